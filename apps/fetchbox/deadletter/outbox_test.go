package deadletter_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestEachResourceThatFailedForGoodHasOneDeadLetter(t *testing.T) {
	s := newScene(t)
	var counted []string
	s.outbox.Published = func(code string) { counted = append(counted, code) }
	ids := s.fails("DOWNLOAD_TIMEOUT", "UPLOAD_S3_ERROR", "HANDLER_REFUSED")
	for range 3 {
		s.steps()
	}
	s.once(ids)
	if want := []string{"DOWNLOAD_TIMEOUT", "HANDLER_REFUSED", "UPLOAD_S3_ERROR"}; !slices.Equal(slices.Sorted(slices.Values(counted)), want) {
		t.Errorf("counted %v", counted)
	}
	for _, letter := range s.letters() {
		if i := slices.Index(ids, mustID(t, letter.GetTaskId())); i == 0 {
			if letter.GetFailureCode() != "DOWNLOAD_TIMEOUT" || letter.GetAttempts() != 1 || letter.GetGeneration() != 1 || letter.GetOwner() != "acme" || letter.GetJobId() != s.group.String() ||
				!strings.Contains(letter.GetFailureMessage(), "GET of the resource failed") || letter.GetMetadata()["proxy"] != "eu#1" || letter.GetMetadata()["status"] != "503" ||
				letter.Host() != "host0.example" || time.Since(letter.FailedAt()).Abs() > time.Hour {
				t.Errorf("%v", letter)
			}
		}
		if task := letter.GetTask(); bytes.Contains(task, []byte("secret")) || !bytes.Contains(task, []byte("Authorization")) {
			t.Errorf("the task has a credential, or not the name of its header: %s", task)
		}
	}
}

func mustID(t *testing.T, text string) holdfast.ID {
	t.Helper()
	id, err := holdfast.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A crash between the publish and its record leaves a message that nothing in the store tells of.
func TestADeadLetterWhoseRecordWasLostIsNotPublishedAgain(t *testing.T) {
	for _, window := range []time.Duration{10 * time.Minute, 100 * time.Millisecond} { // the second one is over when the outbox tries again
		t.Run(window.String(), func(t *testing.T) {
			s := newScene(t)
			if _, err := s.admin().CreateStream(t.Context(), jetstream.StreamConfig{Name: deadletter.StreamName, Subjects: []string{deadletter.Subject}, Storage: jetstream.FileStorage, Duplicates: window, AllowDirect: true}); err != nil {
				t.Fatal(err)
			}
			ids := s.fails("DOWNLOAD_TIMEOUT", "DOWNLOAD_HTTP_5XX", "DOWNLOAD_HTTP_4XX")
			s.faulty.Plan(storetest.Fault{Verb: "Apply", N: 2})
			if err := s.outbox.Step(t.Context()); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Fatalf("%v", err)
			}
			<-time.After(3 * min(window, 100*time.Millisecond)) // the window passes by the server's clock
			s.steps()
			s.once(ids)
		})
	}
}

// Every call of the store fails once, before and after it had its effect.
func TestWhicheverCallFailsEachDeadLetterIsPublishedOnce(t *testing.T) {
	for n := 1; ; n++ {
		fired := false
		for _, after := range []bool{false, true} {
			s := newScene(t)
			ids := s.fails("DOWNLOAD_TIMEOUT", "DOWNLOAD_HTTP_5XX")
			s.faulty.Plan(storetest.Fault{N: n, After: after})
			_ = s.outbox.Step(t.Context()) // it may fail: the next one continues
			fired = s.faulty.Fired() > 0 || fired
			s.faulty.Plan()
			s.steps()
			s.once(ids)
		}
		if !fired {
			if n < 4 {
				t.Errorf("only %d calls", n-1)
			}
			return
		}
	}
}

func TestDeadLettersWaitWhileTheStreamIsDown(t *testing.T) {
	s := newScene(t)
	ids := s.fails("DOWNLOAD_TIMEOUT")
	s.steps()
	s.server.Close()
	ids = append(ids, s.fails("DOWNLOAD_HTTP_5XX", "UPLOAD_TIMEOUT")...)
	for range 3 {
		if err := s.outbox.Step(t.Context()); err == nil {
			t.Fatal("published on a stream that is down")
		}
	}
	if s.outbox.Behind() == 0 {
		t.Error("nothing tells that dead letters wait")
	}
	s.stream.Close()
	s.serves()
	s.steps()
	s.once(ids)
	if s.outbox.Behind() != 0 {
		t.Error("it still says that dead letters wait")
	}
}

func TestADeletedStreamIsFilledAgainAsItWas(t *testing.T) {
	s := newScene(t)
	ids := s.fails("DOWNLOAD_TIMEOUT", "UPLOAD_S3_ERROR")
	s.steps()
	if _, err := s.store.Retry(t.Context(), store.Intervention{Job: ids[0], Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	s.works(ids)
	s.steps()
	before := s.letters()
	if len(before) != 3 || before[2].GetGeneration() != 2 {
		t.Fatalf("%v", before)
	}
	if err := s.admin().DeleteStream(t.Context(), deadletter.StreamName); err != nil {
		t.Fatal(err)
	}
	s.steps()
	after := s.letters()
	if len(after) != len(before) {
		t.Fatalf("%d dead letters were %d", len(after), len(before))
	}
	for i := range after {
		if after[i].Sequence != before[i].Sequence || !proto.Equal(after[i].DeadLetterTask, before[i].DeadLetterTask) {
			t.Errorf("%v was %v", after[i], before[i])
		}
	}
}

func TestTwoOutboxesPublishEachDeadLetterOnce(t *testing.T) {
	s := newScene(t)
	var codes []string
	for range 40 {
		codes = append(codes, "DOWNLOAD_TIMEOUT")
	}
	ids := s.fails(codes...)
	other := &deadletter.Outbox{Store: s.store, Stream: s.stream, Kind: kind}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < 200 && other.Step(t.Context()) != nil; i++ {
		}
	}()
	s.steps()
	<-done
	s.steps()
	s.once(ids)
}

func TestTheStreamAnswersByNumber(t *testing.T) {
	s := newScene(t)
	s.fails("DOWNLOAD_TIMEOUT", "UPLOAD_S3_ERROR", "HANDLER_REFUSED")
	s.steps()
	letters, err := s.stream.Newest(t.Context(), 0, 2)
	if err != nil || len(letters) != 2 || letters[0].Sequence != 3 || letters[1].Sequence != 2 {
		t.Errorf("the newest two: %v, %v", letters, err)
	}
	if letters, err = s.stream.Newest(t.Context(), 2, 10); err != nil || len(letters) != 1 || letters[0].Sequence != 1 {
		t.Errorf("those before the second: %v, %v", letters, err)
	}
	if letter, err := s.stream.Get(t.Context(), 2); err != nil || letter.Sequence != 2 {
		t.Errorf("%v, %v", letter, err)
	}
	for _, seq := range []uint64{4, 1 << 40} {
		if _, err := s.stream.Get(t.Context(), seq); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("%d: %v", seq, err)
		}
	}
	if at, err := s.stream.Position(t.Context()); err != nil || at.Last != 3 || at.First != 1 || at.Letters != 3 {
		t.Errorf("%+v, %v", at, err)
	}
	var seqs []string
	for letter, err := range s.stream.From(t.Context(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, fmt.Sprint(letter.Sequence))
	}
	if strings.Join(seqs, " ") != "2 3" {
		t.Errorf("from the second: %v", seqs)
	}
}
