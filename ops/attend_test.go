package ops

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestAKindWithoutAWorkerIsFoundByQueueAndKind(t *testing.T) {
	depths := []store.Depth{{Queue: "q", Kinds: []string{"a", "b"}}, {Queue: "r", Kinds: []string{"a", "http"}}, {Queue: "s"}}
	workers := []store.WorkerInfo{{Queues: []string{"q"}, Kinds: []string{"a"}}, {Queues: []string{"*"}, Kinds: []string{"http"}}, {Queues: []string{"q"}}}
	if got, want := FindUnattended(depths, workers), []Unattended{{Queue: "q", Kind: "b"}, {Queue: "r", Kind: "a"}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAKindWithoutAWorkerIsOneEventAndItsEndAnother(t *testing.T) {
	mail := []Unattended{{Queue: "q", Kind: "mail"}}
	var known []Unattended
	for _, step := range []struct {
		at   int // minutes
		seen []Unattended
		want string
	}{{0, mail, ""}, {0, mail, ""}, {1, mail, "unattended"}, {2, mail, ""}, {3, nil, "attended"}, {4, nil, ""}, {5, mail, ""}, {5, nil, ""}} {
		var events []store.Event
		known, events = attendance(known, step.seen, noon.Add(time.Duration(step.at)*time.Minute))
		written := ""
		for _, e := range events {
			written += e.Name
			if e.Subject != "kind/mail" || e.Reason == "" || e.Actor == "" {
				t.Errorf("minute %d: %+v", step.at, e)
			}
		}
		if written != step.want || len(known) != len(step.seen) {
			t.Errorf("minute %d: %q, %d remembered; want %q", step.at, written, len(known), step.want)
		}
	}
}

func TestAttendWritesItsEvents(t *testing.T) {
	ctx := context.Background()
	jobs, err := anystore.Open(ctx, filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	s := New(jobs, Config{})
	attend := func() {
		t.Helper()
		if err := s.Attend(ctx); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (all []string) {
		events, err := jobs.Events(ctx, "kind/mail", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			all = append(all, e.Name)
		}
		return all
	}
	if _, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "mail"}}); err != nil {
		t.Fatal(err)
	}
	attend()
	records, err := jobs.Records(ctx, namespaceAttendance)
	var known []Unattended
	if err != nil || len(records) != 1 || json.Unmarshal(records[0].Body, &known) != nil || len(known) != 1 {
		t.Fatalf("%v %v %v", records, known, err)
	}
	known[0].Since = known[0].Since.Add(-unattendedFor)
	records[0].Body, _ = json.Marshal(known)
	if err := jobs.Apply(ctx, store.Change{Records: records}); err != nil {
		t.Fatal(err)
	}
	attend()
	attend()
	if got := names(); !slices.Equal(got, []string{"unattended"}) {
		t.Errorf("after a minute: %v", got)
	}
	if err := jobs.ReportWorker(ctx, store.WorkerInfo{Worker: "w", Queues: []string{holdfast.DefaultQueue}, Kinds: []string{"mail"}, Slots: 1, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	attend()
	attend()
	if got := names(); !slices.Equal(got, []string{"attended", "unattended"}) { // the newest first
		t.Errorf("with a worker: %v", got)
	}
}
