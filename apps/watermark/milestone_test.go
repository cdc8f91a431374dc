package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
	"github.com/holdfastdev/holdfast/store"
)

// The milestones of document 004, section 11, with its delays in virtual time.

// M1: "Transient failure retries 3 times with correct delays".
func TestMilestone1ATransientFailureIsRetriedAfter1And5And15MinutesAndThenFailed(t *testing.T) {
	tell(t, func(s *stage) {
		s.behaves("killed")
		s.publishes("", "Grace Hopper")
		s.works()
		s.becomes(campaign.Failed)
		history, err := s.app.jobs.History(context.Background(), s.jobs()[0].ID)
		if err != nil || len(history.Attempts) != 4 {
			t.Fatalf("%d attempts, %v", len(history.Attempts), err)
		}
		for n, delay := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
			if waited := history.Attempts[n+1].StartedAt.Sub(history.Attempts[n].EndedAt); waited < delay || waited > delay+5*time.Second {
				t.Errorf("retry %d comes after %v, want %v", n+1, waited, delay)
			}
		}
		s.find(`(>3/3</span>)`)
		s.find(`(Error FFMPEG_KILLED)`)
	})
}

// M1: "corrupt-file failure is immediately permanent".
func TestMilestone1ACorruptFileFailsAtOnce(t *testing.T) {
	tell(t, func(s *stage) {
		s.behaves("corrupt")
		s.publishes("", "Grace Hopper")
		begin := time.Now()
		s.works()
		s.becomes(campaign.Failed)
		if job := s.jobs()[0]; job.Failures != 1 || time.Since(begin) > 10*time.Second {
			t.Errorf("%d failures in %v", job.Failures, time.Since(begin))
		}
		if strings.Contains(s.page, "/3</span>") {
			t.Error("the page shows retries that were not made")
		}
	})
}

// M2: "Job manually set to RUNNING with started_at = now - 31m resets to PENDING on next cleanup tick", without spending a retry.
func TestMilestone2ACopyWhoseWorkerIsLostIsMadeByAnotherAndSpendsNoRetry(t *testing.T) {
	tell(t, func(s *stage) {
		s.publishes("", "Grace Hopper")
		leases, err := s.app.jobs.Claim(context.Background(), store.Claim{Worker: "lost", Queues: []string{campaign.Queue}, Limit: 1, Start: 1, Lease: time.Minute})
		if err != nil || len(leases) != 1 {
			t.Fatal(leases, err)
		}
		s.pass(31 * time.Minute)
		if s.get(s.campaign); s.state() != campaign.Processing {
			t.Errorf("the campaign is %s", s.state())
		}
		s.works()
		begin := time.Now()
		s.becomes(campaign.Ready)
		if job := s.jobs()[0]; job.Failures != 0 || job.Crashes != 1 || time.Since(begin) > time.Minute {
			t.Errorf("%d failures, %d lost workers, after %v", job.Failures, job.Crashes, time.Since(begin))
		}
	})
}

// M3: "Admin can retry a failed token; campaign reverts to PROCESSING; SSE updates badge without page reload."
func TestMilestone3AFailedTokenIsRetriedByHandAndTheEventsSayWhatHappens(t *testing.T) {
	tell(t, func(s *stage) {
		s.behaves("faulty")
		s.publishes("", "Grace Hopper", "Faulty Fred")
		token := s.find(`data-token-id="([^"]+)">\s*<th[^>]*><span>Faulty`)
		all, one := s.listens(s.campaign+"/events"), s.listens(s.campaign+"/tokens/"+token+"/events")
		s.works()
		s.becomes(campaign.Partial)
		s.pass(2 * time.Second)
		for name, l := range map[string]*listener{"campaign": all, "token": one} {
			if !l.has("token_failed ", token, `"error":"The video is damaged`) {
				t.Errorf("the events of the %s lack the failure: %v", name, l.events)
			}
		}
		s.find(`(Warning: 1 watermarking job\(s\) failed permanently\. Use the retry buttons below to re-attempt individual tokens\.)`)
		retry := s.find(`action="(/campaigns/[^"]+/tokens/` + token + `/retry)"`)
		grace := s.find(`data-token-id="([^"]+)">\s*<th[^>]*><span>Grace`)
		s.post(strings.Replace(retry, token, grace, 1), http.StatusBadRequest, url.Values{})
		s.find(`(Token is not in a failed state\.)`)

		s.end()
		s.behaves("well")
		s.get(s.campaign)
		s.post(retry, http.StatusOK, url.Values{})
		s.find(`(Retry queued for Faulty Fred\.)`)
		if s.state() != campaign.Processing {
			t.Errorf("after the retry the campaign is %s", s.state())
		}
		s.works()
		s.becomes(campaign.Ready)
		s.pass(2 * time.Second)
		if !all.has("progress ", token, `"status":"ACTIVE"`) || !all.has(`campaign {"state":"READY"}`) || one.has(grace) {
			t.Errorf("events of the campaign %v, of the token %v", all.events, one.events)
		}
		s.checkOtherAccounts(retry)
	})
}

// checkOtherAccounts checks that another account finds nothing of the campaign.
func (s *stage) checkOtherAccounts(retry string) {
	s.Helper()
	s.post("/sign-out", http.StatusOK, url.Values{})
	s.post("/sign-up", http.StatusOK, url.Values{"email": {"eve@example.org"}, "password": {"a long password"}})
	s.get("/videos")
	s.post(retry, http.StatusNotFound, url.Values{})
	for _, path := range []string{s.campaign, s.campaign + "/events", strings.TrimSuffix(retry, "retry") + "events"} {
		a, err := s.Get(s.base + path)
		s.read(a, err, http.StatusNotFound)
	}
}

// A second failure after a manual retry is an event of its own, also when both are seen as the same state.
func TestMilestone3ASecondFailureAfterARetryIsAnEventToo(t *testing.T) {
	tell(t, func(s *stage) {
		s.behaves("faulty")
		s.publishes("", "Faulty Fred")
		l := s.listens(s.campaign + "/events")
		s.works()
		for range 2 {
			s.becomes(campaign.Failed)
			s.pass(2 * time.Second)
			s.post(s.find(`action="(/campaigns/[^"]+/retry)"`), http.StatusOK, url.Values{})
			s.pass(3 * time.Second)
		}
		count := 0
		for _, e := range l.events {
			if strings.HasPrefix(e, "token_failed") {
				count++
			}
		}
		if count != 3 {
			t.Errorf("%d failures were events, want 3: %v", count, l.events)
		}
	})
}

// M4: "Campaign owner receives email when a job is permanently failed": also while other copies are still being made.
func TestMilestone4TheOwnerGetsAMailWhenACopyHasFailedForGoodAndOneAboutTheOutcome(t *testing.T) {
	tell(t, func(s *stage) {
		s.behaves("mixed")
		s.publishes("", "Grace Hopper", "Faulty Fred")
		s.works()
		s.pass(2 * time.Minute)
		if got := s.letters(); !slices.Equal(got, []string{`The copy of Faulty Fred in campaign "Spring" has failed`}) {
			t.Errorf("after two minutes the mails are %q", got)
		}
		s.find(`(Faulty Fred: The video is damaged or incomplete\.)`)
		if s.get(s.campaign); s.state() != campaign.Processing {
			t.Errorf("the campaign is %s", s.state())
		}
		s.behaves("faulty")
		s.becomes(campaign.Partial)
		s.pass(2 * time.Minute)
		if got := s.letters(); len(got) != 2 || got[0] != `Campaign "Spring" is ready in part` {
			t.Errorf("the mails are %q", got)
		}
		s.find(`(1 copies are ready, 1 have failed\.)`)
	})
}

func TestManyFailuresOfACampaignAreOneMailAndEachRetryMailsAgain(t *testing.T) {
	tell(t, func(s *stage) {
		s.behaves("faulty")
		var names []string
		for n := range 25 {
			names = append(names, fmt.Sprintf("Faulty %d", n))
		}
		s.publishes("", names...)
		s.works()
		s.becomes(campaign.Failed)
		s.pass(2 * time.Minute)
		got := s.letters()
		if slices.Sort(got); !slices.Equal(got, []string{`25 copies of campaign "Spring" have failed`, `Campaign "Spring" has failed`}) {
			t.Errorf("the mails are %q", got)
		}
		for _, name := range names {
			if n := strings.Count(s.page, name+": The video"); n != 1 {
				t.Errorf("%s is named %d times", name, n)
			}
		}
		s.get(s.campaign)
		s.post(s.find(`action="(/campaigns/[^"]+/retry)"`), http.StatusOK, url.Values{})
		s.pass(2 * time.Minute)
		s.becomes(campaign.Failed)
		if got := s.letters(); len(got) != 4 {
			t.Errorf("after a retry that failed the mails are %q", got)
		}
	})
}

// The state of a token is that of its job: copies must not become PENDING again when the engine deletes old jobs.
func TestACopyCanBeDownloadedMonthsLater(t *testing.T) {
	tell(t, func(s *stage) {
		s.publishes("", "Grace Hopper")
		s.works()
		s.becomes(campaign.Ready)
		link := s.find(`href="http://[^/]+(/d/[A-Z0-9]+)"`)
		s.end()
		s.pass(100 * 24 * time.Hour)
		s.works()
		s.pass(10 * time.Minute)
		s.end()
		s.post("/sign-in", http.StatusOK, url.Values{"email": {"ada@example.org"}, "password": {"a long password"}})
		if s.get(s.campaign); !strings.Contains(s.page, `data-state="active"`) {
			t.Errorf("months later:\n%s", s.page)
		}
		if s.get(link + "/file"); len(s.page) == 0 {
			t.Error("the copy is empty")
		}
		if job := s.jobs()[0]; job.State != holdfast.Complete {
			t.Error(job.State)
		}
	})
}
