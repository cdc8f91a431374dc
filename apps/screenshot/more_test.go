package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"crypto/hmac"
	"crypto/sha256"

	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/store"
)

// signed returns the headers of a request after Standard Webhooks, as a receiver would compute them.
func signed(secret, id string, at time.Time, body string) []string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return []string{"Webhook-Id", id, "Webhook-Timestamp", stamp, "Webhook-Signature", "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
}

func TestAWebhookIsCalledOnceWhenItsShotHasEnded(t *testing.T) {
	onBoth(t, func(s *scene) {
		var mu sync.Mutex
		got := map[string]int{}
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			at, _ := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
			if want := signed(s.service.HookSecret(s.owner), r.Header.Get("Webhook-Id"), time.Unix(at, 0), string(body)); r.Header.Get("Webhook-Signature") != want[5] {
				s.Errorf("the signature is %s", r.Header.Get("Webhook-Signature"))
			}
			var event struct{ Data service.Job }
			_ = json.Unmarshal(body, &event)
			mu.Lock()
			defer mu.Unlock()
			if got[event.Data.ID.String()+" "+event.Data.Status]++; len(got) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable) // it is called again
			}
		}))
		s.Cleanup(receiver.Close)
		s.works()
		good := s.submit("/ok", map[string]any{"webhook": receiver.URL})
		s.ended(good.ID, service.Completed)
		bad := s.submit("/status/404", map[string]any{"webhook": receiver.URL})
		s.until("both were called", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return got[good.ID.String()+" COMPLETED"] == 2 && got[bad.ID.String()+" FAILED"] == 1
		})
	})
}

func TestASignedRequestRetriesAShot(t *testing.T) {
	s := newScene(t)
	s.works()
	s.origin.setDown(true)
	job := s.submit("/page")
	s.ended(job.ID, service.Failed)
	s.origin.setDown(false)
	body := fmt.Sprintf(`{"organisationId": %q, "jobId": %q}`, s.owner, job.ID)
	secret, now := s.service.HookSecret(s.owner), time.Now()
	for _, headers := range [][]string{nil, signed(secret, "m1", now, body+" "), signed(secret, "m1", now.Add(-time.Hour), body), signed(s.service.HookSecret("other"), "m1", now, body)} {
		if a := s.callAs("", "POST", "/api/v1/webhooks/retry", body, headers...); a.Status != 401 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if a := s.callAs("", "POST", "/api/v1/webhooks/retry", body, signed(secret, "m1", now, body)...); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	s.ended(job.ID, service.Completed)
	story := string(s.call("GET", "/api/v1/screenshots/"+job.ID.String()+"/story", nil).Body)
	for _, want := range []string{"webhook m1", "RetryScheduled", "RetryStarted", "RetrySucceeded", "RetryFailed"} {
		if !strings.Contains(story, want) {
			t.Errorf("the story lacks %s: %s", want, story)
		}
	}
}

func TestABudgetLimitsManualRetriesAlsoAtTheSameTime(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		var jobs []service.Job
		for range 4 {
			jobs = append(jobs, s.submit("/status/404"))
		}
		for _, job := range jobs {
			s.ended(job.ID, service.Failed)
		}
		if a := s.call("POST", "/api/v1/budgets", map[string]any{"dailyRetryLimit": 2, "priorityLevel": "HIGH"}); a.Status != 200 {
			s.Fatalf("%d %s", a.Status, a.Body)
		}
		var wait sync.WaitGroup
		var mu sync.Mutex
		count := map[int]int{}
		for _, job := range jobs {
			wait.Go(func() {
				a := s.retry(job.ID)
				mu.Lock()
				defer mu.Unlock()
				count[a.Status]++
			})
		}
		wait.Wait()
		if count[200] != 2 || count[429] != 2 {
			s.Errorf("%v", count)
		}
		if a := s.call("GET", "/api/v1/budgets", nil); !strings.Contains(string(a.Body), `"retriesToday":2`) {
			s.Errorf("%s", a.Body)
		}
		if job, err := s.jobs.Job(s.Context(), s.submit("/ok").ID); err != nil || job.Priority >= 0 {
			s.Errorf("the priority is %d, %v", job.Priority, err)
		}
		for _, bad := range []map[string]any{{"dailyRetryLimit": -1}, {"priorityLevel": "URGENT"}} {
			if a := s.call("POST", "/api/v1/budgets", bad); a.Status != 400 {
				s.Errorf("%d %s", a.Status, a.Body)
			}
		}
		if a := s.call("POST", "/api/v1/budgets", map[string]any{"userId": "nobody"}); a.Status != 404 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
	})
}

func TestAPromiseThatIsMissedIsCompensatedOnce(t *testing.T) {
	onBoth(t, func(s *scene) {
		if a := s.call("POST", "/api/v1/admin/organisations/"+s.owner+"/plan", map[string]any{"retryWithin": "1s", "compensation": 7}); a.Status != 200 {
			s.Fatalf("%d %s", a.Status, a.Body)
		}
		if err := s.service.Pause(s.Context(), service.Caller{Name: "test"}, []string{service.FailedJobs}, 0); err != nil {
			s.Fatal(err)
		}
		s.works()
		job := s.submit("/flaky/1/page")
		s.until("the credits are there", func() bool {
			entries, err := s.service.Ledger().OfJob(s.Context(), job.ID)
			return err == nil && len(entries) == 2 && entries[1].Kind == credit.Compensate && entries[1].Amount == 7
		})
		if err := s.service.Resume(s.Context(), service.Caller{Name: "test"}, nil); err != nil {
			s.Fatal(err)
		}
		s.ended(job.ID, service.Completed)
		s.has(106, 0, 1)
		s.sound()
	})
}

func TestAReservationOfARetryThatWasNeverMadeIsReleased(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		job := s.submit("/status/404")
		s.ended(job.ID, service.Failed)
		s.has(100, 0, 0)
		ledger := s.service.Ledger()
		err := ledger.DB.Write(s.Context(), func(tx *database.Tx) error { // what a process does that is killed before it asks the store
			return ledger.Reserve(s.Context(), tx, credit.Reservation{Owner: s.owner, Job: job.ID, Generation: 2, Amount: 1})
		})
		if err != nil {
			s.Fatal(err)
		}
		s.has(99, 1, 0)
		ledger.Now = func() time.Time { return time.Now().Add(time.Hour) }
		for _, d := range s.service.Duties() {
			if d.Name == "reservations" {
				if err := d.Run(s.Context()); err != nil {
					s.Fatal(err)
				}
			}
		}
		s.has(100, 0, 0)
		ledger.Now = time.Now
		if a := s.retry(job.ID); a.Status != 200 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.sound()
	})
}

func TestTheLedgerFollowsAnOperatorWhoCancelsWithTheToolsOfTheEngine(t *testing.T) {
	s := newScene(t)
	job := s.submit("/ok")
	if _, err := s.operator.Cancel(s.Context(), store.Intervention{Job: job.ID, Actor: "operator"}); err != nil {
		t.Fatal(err)
	}
	s.works()
	s.has(100, 0, 0)
	s.sound()
}
