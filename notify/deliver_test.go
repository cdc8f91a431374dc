package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestADeliveryKeepsItsIdOverAttempts(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		m.answer = func(_ context.Context, d notify.Delivery) error {
			if d.Attempt < 4 {
				return errors.New("not now")
			}
			return nil
		}
		id := s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(1)
		s.until("the fourth attempt", func() bool { return len(m.all()) == 4 })
		told := m.all()
		for i, d := range told {
			expect(s, "id", d.ID, fmt.Sprintf("%s_%d", id, d.Events[0].Seq))
			expect(s, "attempt", d.Attempt, i+1)
			if i > 0 && !d.At.After(told[i-1].At) {
				s.Error("an attempt without a time of its own")
			}
		}
		expect(s, "delivery", s.deliveries(id)[0].State, holdfast.Complete)
	})
}

func TestDeliveriesOfASubscriptionThatIsGoneOrDisabledFailAndSayWhy(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{answer: func(context.Context, notify.Delivery) error { return errors.New("not now") }}
		gone, off := s.subscribes("fake", queuedOnly), s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(1)
		s.until("two attempts", func() bool { return len(m.all()) == 2 })
		version, _ := s.sub(gone)
		if err := s.store.Apply(context.Background(), store.Change{Records: []store.Record{{Namespace: subscription.Namespace, Name: gone.String(), Version: version}}}); err != nil {
			s.Fatal(err)
		}
		s.changes(off, func(sub *subscription.Subscription) { sub.Disabled = "too loud" })
		for id, says := range map[holdfast.ID]string{gone: "was deleted", off: "is disabled: too loud. Enable it"} {
			s.until("the end", func() bool { return s.deliveries(id)[0].State == holdfast.Failed })
			f := s.deliveries(id)[0].LastFailure
			if !strings.Contains(f.Detail, says) || !f.Benign || f.Code != "HANDLER_REFUSED" {
				s.Errorf("%+v", f)
			}
		}
		expect(s, "told", len(m.all()), 2)
	})
}

func TestAReceiverThatIsGoneDisablesItsSubscriptionOnce(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{answer: func(context.Context, notify.Delivery) error {
			return &failure.HTTPError{Status: 410, Err: fmt.Errorf("%w: it answered 410 Gone", notify.ErrGone)}
		}}
		id := s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(5)
		s.until("the end of all", func() bool {
			for _, j := range s.deliveries(id) {
				if !j.State.Terminal() {
					return false
				}
			}
			return len(s.deliveries(id)) == 5
		})
		_, sub := s.sub(id)
		if !strings.Contains(sub.Disabled, "HTTP status 410") {
			s.Error(sub.Disabled)
		}
		expect(s, "story", s.story(id), "[disabled]")
		s.enqueues(1)
		s.passes(time.Minute)
		expect(s, "deliveries", len(s.deliveries(id)), 5)
	})
}

func TestASinkThatPanicsAffectsNoOther(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		bad := s.subscribes("bad", queuedOnly)
		s.subscribes("worse", queuedOnly)
		s.subscribes("fake", queuedOnly)
		s.serves(map[string]notify.Sink{
			"fake": m, "worse": hostless{&fakeSink{}},
			"bad": notify.Func(func(context.Context, notify.Delivery) error { panic("no") }),
		})
		s.passes(time.Second)
		s.enqueues(2)
		s.until("the others", func() bool { return len(m.all()) == 2 })
		s.until("the end", func() bool {
			jobs := s.deliveries(bad)
			return len(jobs) == 2 && jobs[0].State == holdfast.Failed && jobs[1].State == holdfast.Failed
		})
		expect(s, "code", s.deliveries(bad)[0].LastFailure.Code, "SYSTEM_PANIC")
		if n := strings.Count(s.log.String(), "the sink panicked"); n != 1 {
			s.Errorf("complained %d times", n)
		}
	})
}

// hostless is a sink whose method Host panics.
type hostless struct{ *fakeSink }

func (hostless) Host(subscription.Subscription) string { panic("no host") }

func TestARestartInTheMiddleOfADeliveryDeliversAgainUnderTheSameId(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		release := make(chan struct{})
		m.answer = func(ctx context.Context, _ notify.Delivery) error {
			if len(m.all()) <= 3 { // the first three are in progress when the process is lost
				<-release
			}
			return nil
		}
		id := s.subscribes("fake", queuedOnly)
		cut := storetest.NewFaulty(s.store)
		service, err := notify.New(cut, notify.Config{Sinks: one(m), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			s.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- service.Run(context.Background()) }()
		s.passes(time.Second)
		s.enqueues(3)
		s.until("three under way", func() bool { return len(m.all()) == 3 })
		cut.Plan(storetest.Fault{Always: true}, storetest.Fault{Verb: "Await", Always: true})
		close(release)
		hurry, now := context.WithCancel(context.Background())
		now()
		_ = service.Stop(hurry)
		<-ended
		for _, j := range s.deliveries(id) {
			expect(s, "after the loss", j.State, holdfast.Processing)
		}
		s.serves(one(m))
		s.until("all settled", func() bool {
			for _, j := range s.deliveries(id) {
				if j.State != holdfast.Complete {
					return false
				}
			}
			return true
		})
		ids := make(map[string]int)
		for _, d := range m.all() {
			ids[d.ID]++
		}
		expect(s, "ids", len(ids), 3)
		expect(s, "told", len(m.all()), 6)
	})
}

func TestASlowSubscriptionSlowsNeitherJobsNorAnotherSubscription(t *testing.T) {
	runScene(t, func(s *scene) {
		slow := &fakeSink{host: "slow.example.org", answer: func(ctx context.Context, _ notify.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		quick := &fakeSink{host: "quick.example.org"}
		s.subscribes("slow", func(sub *subscription.Subscription) { sub.Events = []string{"complete"} })
		s.subscribes("quick", func(sub *subscription.Subscription) { sub.Kinds = []string{"urgent"}; sub.Events = []string{"queued"} })
		s.serves(map[string]notify.Sink{"slow": slow, "quick": quick})
		s.works()
		s.passes(time.Second)
		ids := s.enqueues(100)
		s.until("the slow one to be busy", func() bool { return len(slow.all()) >= 5 })
		for range 5 {
			before := time.Now()
			told := len(quick.all())
			if _, err := s.store.Enqueue(context.Background(), []holdfast.Draft{{Kind: "urgent", Queue: "elsewhere"}}); err != nil {
				s.Fatal(err)
			}
			s.until("the quick one to be told", func() bool { return len(quick.all()) > told })
			if waited := time.Since(before); waited > 5*time.Second {
				s.Errorf("another subscription waited %v", waited)
			}
			s.passes(3 * time.Second)
		}
		for _, id := range ids {
			job, err := s.store.Job(context.Background(), id)
			if err != nil || job.State != holdfast.Complete {
				s.Fatalf("%v %v", job.State, err)
			}
			if took := job.FinishedAt.Sub(job.CreatedAt); took > 2*time.Second {
				s.Errorf("a job took %v while a subscriber was slow", took)
			}
		}
		if slow.most > 5 {
			s.Errorf("the slow one had %d of 10 slots", slow.most)
		}
	})
}

func TestAFastSubscriptionMayUseAllSlots(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{host: "example.org", answer: func(context.Context, notify.Delivery) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}}
		s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		before := time.Now()
		if _, err := s.store.Enqueue(context.Background(), slicesOf(500)); err != nil {
			s.Fatal(err)
		}
		s.until("all", func() bool { return len(m.all()) == 500 })
		if took := time.Since(before); took > 5*time.Second {
			s.Errorf("500 deliveries of 10 ms took %v", took)
		}
	})
}

func slicesOf(n int) []holdfast.Draft {
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i].Kind = "note"
	}
	return drafts
}

func TestASecretIsFoundByItsNameAndIsNowhereElse(t *testing.T) {
	const canary = "canary-of-a-secret-4711"
	runScene(t, func(s *scene) {
		fails := true
		m := &fakeSink{answer: func(_ context.Context, d notify.Delivery) error {
			if d.Secrets[0] != canary {
				return errors.New("another secret")
			}
			if fails {
				fails = false
				return errors.New("not now")
			}
			return nil
		}}
		id := s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Secrets = []string{"shop-hook"} })
		found := false
		s.serves(one(m), func(c *notify.Config) {
			c.Secret = func(name string) (string, error) {
				if name != "shop-hook" || !found {
					found = true // it is configured after the first attempt
					return "", errors.New("it is not set")
				}
				return canary, nil
			}
		})
		s.passes(time.Second)
		s.enqueues(1)
		s.until("the delivery", func() bool { jobs := s.deliveries(id); return len(jobs) == 1 && jobs[0].State == holdfast.Complete })
		history, err := s.store.History(context.Background(), s.deliveries(id)[0].ID)
		if err != nil || len(history.Attempts) != 2 || !strings.Contains(history.Attempts[0].Failure.Detail, "the secret shop-hook") {
			s.Errorf("%v: %+v", err, history.Attempts)
		}
		files, _ := filepath.Glob(s.path + "*")
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil || strings.Contains(string(body), canary) {
				s.Errorf("%s holds the secret (%v)", filepath.Base(file), err)
			}
		}
		feed, err := s.store.Feed(context.Background(), 0, 1000)
		body, _ := json.Marshal(feed)
		if err != nil || strings.Contains(string(body), canary) || strings.Contains(s.log.String(), canary) {
			s.Error("the feed or the log tells the secret")
		}
	})
}

func TestSecretsComeFromTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_SECRET_SHOP_HOOK", "from a variable")
	t.Setenv("HOLDFAST_SECRET_OLD_HOOK_FILE", file)
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Secrets = []string{"shop-hook", "old.hook"} })
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(1)
		s.until("the delivery", func() bool { return len(m.all()) == 1 })
		expect(s, "secrets", m.all()[0].Secrets, "[from a variable from a file]")
	})
}

func TestTheNotifierLeavesRetentionToTheApplication(t *testing.T) {
	runScene(t, func(s *scene) {
		s.serves(one(&fakeSink{}))
		s.passes(time.Minute)
		for _, verb := range []string{"Purge", "DeleteHistory", "Artifacts", "MissedDeadlines"} {
			expect(s, verb, s.faulty.Calls(verb), 0)
		}
	})
}

func TestABadServiceConfigIsRefusedWithEveryProblem(t *testing.T) {
	_, err := notify.New(nil, notify.Config{Sinks: map[string]notify.Sink{"web hook": nil}, Beat: -1})
	for _, part := range []string{"the store is nil", "web hook", "Beat is"} {
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

// forges enqueues a forged delivery of a subscription that differs from a genuine one in one thing.
func (s *scene) forges(of holdfast.ID, change func(d *holdfast.Draft, e *store.Event)) holdfast.ID {
	s.Helper()
	f, err := s.store.Feed(context.Background(), 0, 1000)
	if err != nil || len(f.Events) == 0 {
		s.Fatal(f, err)
	}
	e := f.Events[len(f.Events)-1]
	d := holdfast.Draft{ID: holdfast.NewID(), Kind: "holdfast.fake", Queue: subscription.Queue, Owner: subscription.Owner(of)}
	change(&d, &e)
	d.Args, err = json.Marshal(map[string]any{"subscription": of, "id": "forged_1", "events": []store.Event{e}})
	if err != nil {
		s.Fatal(err)
	}
	if err := s.store.Apply(context.Background(), store.Change{Deliver: []holdfast.Draft{d}}); err != nil {
		s.Fatal(err)
	}
	return d.ID
}

func TestADeliveryThatTheNotifierDidNotMakeIsNotDelivered(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		id := s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(1)
		s.until("the true one", func() bool { return len(m.all()) == 1 })
		for what, change := range map[string]func(d *holdfast.Draft, e *store.Event){
			"of another subscription": func(d *holdfast.Draft, _ *store.Event) { d.Owner = subscription.Owner(holdfast.NewID()) },
			"of another event":        func(_ *holdfast.Draft, e *store.Event) { e.Name = "failed" },
			"by another actor":        func(_ *holdfast.Draft, e *store.Event) { e.Actor = "ada" },
			"of another job":          func(_ *holdfast.Draft, e *store.Event) { e.Job = holdfast.NewID() },
			"of what never happened":  func(_ *holdfast.Draft, e *store.Event) { e.Seq += 1000 },
			"without a number":        func(_ *holdfast.Draft, e *store.Event) { e.Seq = 0; e.Actor = "ada" },
		} {
			forged := s.forges(id, change)
			s.until("the forged one "+what+" to end", func() bool {
				job, err := s.store.Job(context.Background(), forged)
				return err == nil && job.State == holdfast.Failed && job.LastFailure.Code == "HANDLER_REFUSED"
			})
			expect(s, what, len(m.all()), 1)
		}
		s.forges(id, func(*holdfast.Draft, *store.Event) {})
		s.until("one that says what the feed says", func() bool { return len(m.all()) == 2 })
	})
}

func TestADeliveryThatAProcessIsNotConfiguredForIsMadeByAnotherAtNoCost(t *testing.T) {
	for what, unable := range map[string]func() (notify.Sink, func(*notify.Config)){
		"a target that its sink does not allow": func() (notify.Sink, func(*notify.Config)) {
			return &fakeSink{answer: func(context.Context, notify.Delivery) error {
				return failure.WithCode(fmt.Errorf("%w: no http", notify.ErrNotConfigured), "ADDRESS_BLOCKED")
			}}, func(*notify.Config) {}
		},
		"a secret that it lacks": func() (notify.Sink, func(*notify.Config)) {
			return &fakeSink{}, func(c *notify.Config) {
				c.Secret = func(string) (string, error) { return "", errors.New("it is not set") }
			}
		},
	} {
		runScene(t, func(s *scene) {
			bad, cfg := unable()
			s.serves(one(bad), cfg)
			id := s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Secrets = []string{"shop"} })
			s.passes(time.Second)
			s.enqueues(10)
			s.until(what+": deliveries that wait", func() bool {
				jobs := s.deliveries(id)
				return len(jobs) == 10 && jobs[0].Releases > 0
			})
			m := &fakeSink{}
			s.serves(one(m), func(c *notify.Config) { c.Secret = func(string) (string, error) { return "secret", nil } })
			s.until(what+": all deliveries", func() bool { return len(m.all()) == 10 })
			s.passes(time.Minute)
			for _, j := range s.deliveries(id) {
				if j.State != holdfast.Complete || j.Failures != 0 {
					s.Errorf("%s: a delivery is %s after %d failures: %+v", what, j.State, j.Failures, j.LastFailure)
				}
			}
		})
	}
}

func TestADeliveryThatNoProcessIsConfiguredForFailsInTheEndAndSaysWhy(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{traits: notify.Traits{Policy: failure.Policy{MaxAttempts: 3, GiveUpAfter: 6 * time.Hour}}}
		s.serves(one(m), func(c *notify.Config) {
			c.Secret = func(string) (string, error) { return "", errors.New("it is not set") }
		})
		id := s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Secrets = []string{"shop"} })
		s.passes(time.Second)
		s.enqueues(1)
		s.passes(5 * time.Hour)
		j := s.deliveries(id)[0]
		if j.State == holdfast.Failed || j.Failures != 0 || j.Releases < 20 || j.LastFailure.Code != "SECRET_MISSING" ||
			!strings.Contains(j.LastFailure.Detail, "this process is not configured for the delivery: the secret shop") {
			s.Errorf("after 5 hours it is %s, with %d releases: %+v", j.State, j.Releases, j.LastFailure)
		}
		s.passes(time.Hour)
		j = s.deliveries(id)[0]
		if j.State != holdfast.Failed || j.LastFailure.Code != "SECRET_MISSING" || len(m.all()) != 0 {
			s.Errorf("after 6 hours it is %s: %+v", j.State, j.LastFailure)
		}
	})
}
