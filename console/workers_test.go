package console_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/key"
)

func TestWorkersSayWhatTheyHaveInTheirHands(t *testing.T) {
	s := stage(t, key.Operator, nil)
	s.shows("/workers", "worker-a/1", "worker-b/1", "1.3.2, 1.4.0", "2 of 6", "worker%3Aworker-b%2F1", "Jobs wait in queues that no worker is on", "/queues#q-pictures")
}

func TestADutyIsPausedAndResumedFromThePageOfWorkers(t *testing.T) {
	s := stage(t, key.Operator, nil)
	form := url.Values{"back": {"/workers"}, "reason": {"a backup"}, "for": {"15m"}}
	if _, text := s.post("/workers/duties/retention/pause", form); !strings.Contains(text, "leaves the duty retention alone for 15 min") || !strings.Contains(text, "a backup") {
		t.Error("nothing is said of the pause")
	}
	if _, text := s.post("/workers/duties/claim/pause", form); !strings.Contains(text, "takes no orders") {
		t.Error("claim is paused")
	}
	if _, text := s.post("/workers/duties/retention/resume", url.Values{"back": {"/workers"}}); strings.Contains(text, "a backup") {
		t.Error("it is still paused")
	}
}
