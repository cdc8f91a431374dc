// Package opstest is a conformance suite for ops.Operator. It uses a store only through its interfaces and an operator only as an
// ops.Operator, so it tests an operator on a store and a client of a server alike.
package opstest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A Way returns the operator to test, in front of a store.
type Way func(t *testing.T, db store.Store, cfg ops.Config) ops.Operator

// Near is the Way for an operator in the same process.
func Near(_ *testing.T, db store.Store, cfg ops.Config) ops.Operator { return ops.New(db, cfg) }

// Run runs every test of the suite, each on a store of its own and an operator made by way. At the end of each the integrity
// check must find nothing.
func Run(t *testing.T, open func(t *testing.T) store.Store, way Way) {
	for _, law := range laws {
		t.Run(law.sentence, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			s := &scene{T: t, ctx: ctx, store: open(t), way: way}
			s.operator = s.another(ops.Config{})
			law.check(s)
			s.expectHealthy()
			s.expectEventsWithNames()
		})
	}
}

var laws = []struct {
	sentence string
	check    func(*scene)
}{
	{"a failed job is retried once, and the answer is the number of jobs ahead of it", retryOfAFailedJob},
	{"a manual retry replaces the automatic one", retryReplacesAutomaticRetry},
	{"a retry is refused when the source of the job is gone", retryWithoutSource},
	{"a job of another owner cannot be retried, cancelled or discarded", foreignOwner},
	{"a complete job is not retried, and a waiting one is not retried twice", retryRefused},
	{"a queued job is cancelled at once", cancelQueued},
	{"a processing job is asked to stop and ends cancelled", cancelProcessing},
	{"a paused queue keeps its jobs and says so", pauseQueue},
	{"a paused kind keeps its jobs and says so", pauseKind},
	{"a dead letter is listed with its remedy until it is discarded with a reason", deadLetters},
	{"every reason why a job waits is named", explainWaiting},
	{"a job in process is explained by its worker", explainProcessing},
	{"an ended job is explained by its end", explainEnded},
	{"a story contains every transition once and in order", story},
	{"a story contains late results", storyOfALateResult},
	{"the doctor counts every job once", doctor},
	{"stats count the jobs of a queue by state", stats},
	{"a hold on a queue, kind, owner, dependency or tag keeps its jobs and says so", holdsOfEveryScope},
	{"a pattern holds every owner it covers", patternOfOwners},
	{"a limit that is reached and a rate that is used up are named", limitsAreExplained},
	{"a hold on retries lets first attempts pass", retriesAloneAreHeld},
	{"a breaker is opened, closed, forced and left alone by hand", breakersByHand},
	{"simultaneous commands to a breaker write one event", breakersAreForcedOnce},
	{"the weight of an owner is set and reset", sharesOfOwners},
	{"a start later than retry_within is in the story", brokenPromises},
	{"a preview counts what a redrive would leave out, by reason", previewByReason},
	{"a redrive shows the state of its jobs", redriveToItsEnd},
	{"a redrive is paused, resumed and cancelled by hand", redrivesByHand},
	{"an error group shows what varies, and its notes", errorGroups},
	{"numbers are known without reading everything", figures},
	{"analytics show whether retries succeeded", analytics},
	{"analytics show how long a dependency was down", analyticsOfABreaker},
	{"a group is shown with its members, sealed and retried by hand", groupsByHand},
	{"a group is cancelled by hand", cancelledGroups},
	{"a member that waits is explained by those it waits for", membersThatWait},
	{"the feed is followed from a number on", feedIsFollowed},
	{"what people did is found by job, by subject and in the feed", auditTrail},
	{"a subscription is created, replaced, disabled, enabled, rewound and deleted", subscriptionsByHand},
	{"a delivery is sent again", deliveriesAreSentAgain},
	{"a schedule is added, paused, run out of turn, replaced and removed", schedulesByHand},
	{"a duty is paused, resumed and run by hand, unless workers cannot do without it", dutiesByHand},
	{"a queued job is edited, unless it is not as the editor saw it", editsOfAQueuedJob},
	{"an edit shows what it changed, and can be taken back", restoreOfAnEdit},
	{"a policy is applied whole or not at all", policiesByHand},
	{"every setting is explained by its source, also those that workers have in Go", policiesExplained},
	{"a policy is removed, and version numbers continue", policiesRemoved},
	{"a policy that names an undefined code is refused unless the operator allows the code", policiesOfUnknownCodes},
	{"a policy is shown with the workers that do not follow it", policiesNotFollowed},
	{"a code that a worker published is explained wherever it shows", publishedCodes},
	{"a key is shown once, listed without its secret and revoked", keysByHand},
	{"names with slashes and colons are found, and so are dots alone", namesOfEverySort},
	{"a list continues where the previous page ended", pagesOfAList},
	{"every question about one job is answered", everythingAboutAJob},
	{"rules of retention are applied, and a purged job is explained by its tombstone", rulesOfRetention},
}

// A scene is the fixture of one test: a store, and an operator in front of it.
type scene struct {
	*testing.T
	ctx      context.Context
	store    store.Store
	operator ops.Operator
	way      Way
}

// another returns an operator on the same store with another config.
func (s *scene) another(cfg ops.Config) ops.Operator { return s.way(s.T, s.store, cfg) }

func (s *scene) enqueue(change ...func(*holdfast.Draft)) holdfast.ID {
	s.Helper()
	draft := holdfast.Draft{Kind: "mail"}
	for _, c := range change {
		c(&draft)
	}
	receipts, err := s.store.Enqueue(s.ctx, []holdfast.Draft{draft})
	s.must(err)
	return receipts[0].ID
}

// claim takes the next job of the default queue, which must be the wanted one.
func (s *scene) claim(want holdfast.ID) store.Lease {
	s.Helper()
	leases, err := s.store.Claim(s.ctx, store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Start: 1, Lease: time.Minute})
	s.must(err)
	if len(leases) != 1 || leases[0].ID != want {
		s.Fatalf("claimed %v, wanted %s", leases, want)
	}
	return leases[0]
}

func (s *scene) settle(l store.Lease, change func(*store.Settlement)) {
	s.Helper()
	settlement := store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete}
	change(&settlement)
	answers, err := s.store.Settle(s.ctx, []store.Settlement{settlement})
	s.must(err)
	s.must(answers[0])
}

// complete, fail and postpone change a settlement into one of three outcomes.
func complete(*store.Settlement) {}

func fail(s *store.Settlement) {
	s.To, s.Charge, s.Limit, s.Failure = holdfast.Failed, store.ChargeFailure, 9, &holdfast.Failure{Code: "TIMEOUT", Category: "timeout", Message: "it took too long", Detail: "dial tcp:\n\tno answer\n\ngoroutine 1 [running]:", Fingerprint: "f1"}
}

func postpone(s *store.Settlement) {
	fail(s)
	s.To, s.Delay, s.Why = holdfast.Queued, time.Hour, "retry 1 of 9"
}

func (s *scene) failed() holdfast.ID {
	s.Helper()
	id := s.enqueue()
	s.settle(s.claim(id), fail)
	return id
}

func by(id holdfast.ID) store.Intervention {
	return store.Intervention{Job: id, Actor: "ann", Reason: "because"}
}

// byPerson is the By of a person, in a request.
func byPerson(actor, reason string) ops.Actor {
	return ops.Actor{Name: actor, Reason: reason, Request: "request-7"}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) expect(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("answered %v, wanted %v", err, want)
	}
}

func (s *scene) expectState(id holdfast.ID, want holdfast.State) holdfast.Job {
	s.Helper()
	job, err := s.operator.Job(s.ctx, id)
	s.must(err)
	if job.State != want {
		s.Fatalf("the job is %s, wanted %s", job.State, want)
	}
	return job
}

// expectReasons compares the names of what explains a job, in any order.
func (s *scene) expectReasons(id holdfast.ID, want ...string) {
	s.Helper()
	explanation, err := s.operator.Explain(s.ctx, id)
	s.must(err)
	var names []string
	for _, reason := range explanation.Reasons {
		names = append(names, reason.Name)
		if reason.Text == "" {
			s.Errorf("the reason %q says nothing", reason.Name)
		}
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		s.Fatalf("the reasons are %q, wanted %q: %+v", names, want, explanation.Reasons)
	}
}

func (s *scene) expectStory(id holdfast.ID, want ...string) []ops.StoryLine {
	s.Helper()
	lines, err := s.operator.Story(s.ctx, id)
	s.must(err)
	var names []string
	for _, line := range lines {
		names = append(names, line.Name)
		if line.Text == "" || line.At.IsZero() {
			s.Errorf("the line %q says nothing: %+v", line.Name, line)
		}
	}
	if !slices.Equal(names, want) {
		s.Fatalf("the story is\n %s\nwanted\n %s", strings.Join(names, ", "), strings.Join(want, ", "))
	}
	return lines
}

func (s *scene) expectHealthy() {
	s.Helper()
	report, err := s.operator.CheckIntegrity(s.ctx)
	s.must(err)
	if !report.Healthy {
		s.Errorf("the doctor found %+v", report.Findings)
	}
}
