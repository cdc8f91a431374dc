package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/store/storetest"
)

const kind = "test.fetch"

// patience is how long a test waits for something that must happen.
const patience = 60 * time.Second

// A scene is a store, a stream of its own, and an outbox between them.
type scene struct {
	*testing.T
	store  store.Store
	faulty *storetest.Faulty
	folder string // of the stream
	server *deadletter.Server
	stream *deadletter.Stream
	outbox *deadletter.Outbox
	group  holdfast.ID
}

func newScene(t *testing.T) *scene {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Apply(t.Context(), store.Change{Listen: []store.Listener{{Name: "test", Events: []string{"*"}}}}); err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, store: db, faulty: storetest.NewFaulty(db), folder: t.TempDir()}
	s.serves()
	s.outbox = &deadletter.Outbox{Store: s.faulty, Stream: s.stream, Kind: kind}
	group, err := db.CreateGroup(t.Context(), holdfast.Group{Owner: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	s.group = group.ID
	return s
}

// serves starts the server of the stream and connects to it.
func (s *scene) serves() {
	s.Helper()
	server, err := deadletter.StartServer(s.folder, "")
	if err != nil {
		s.Fatal(err)
	}
	s.server = server
	s.Cleanup(server.Close)
	if s.stream, err = deadletter.Connect("", 0, server.Option()); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(s.stream.Close)
	if s.outbox != nil {
		s.outbox.Stream = s.stream
	}
}

// fails enqueues resources and lets them fail for good, each with a code.
func (s *scene) fails(codes ...string) (ids []holdfast.ID) {
	s.Helper()
	var drafts []holdfast.Draft
	for i, name := range codes {
		args, _ := json.Marshal(map[string]any{"url": fmt.Sprintf("https://user:secret@host%d.example/a", i), "code": name, "headers": map[string]string{"Authorization": "Bearer secret"}})
		drafts = append(drafts, holdfast.Draft{ID: holdfast.NewID(), Kind: kind, Queue: "test", Owner: "acme", Group: s.group, Args: args})
		ids = append(ids, drafts[i].ID)
	}
	if _, err := s.store.Enqueue(s.Context(), drafts); err != nil {
		s.Fatal(err)
	}
	s.works(ids)
	return ids
}

// works runs an engine until the jobs have ended.
func (s *scene) works(ids []holdfast.ID) {
	s.Helper()
	e, err := engine.New(s.store, engine.Config{Queues: []string{"test"}, Taxonomy: code.Taxonomy(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	engine.HandleRaw(e, kind, func(_ context.Context, job *engine.Raw) error {
		var args struct{ Code string }
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return err
		}
		err := failure.WithCode(errors.New("GET of the resource failed with "+args.Code), args.Code)
		return failure.NeverRetry(failure.With(failure.With(err, "proxy", "eu#1"), "status", "503"))
	})
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	s.until("all have ended", func() bool {
		for _, id := range ids {
			job, err := s.store.Job(s.Context(), id)
			if err != nil {
				s.Fatal(err)
			}
			if !job.State.Terminal() {
				return false
			}
		}
		return true
	})
	cancel()
	if err := <-ended; err != nil {
		s.Error(err)
	}
}

func (s *scene) until(what string, yes func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !yes(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("timed out waiting until %s", what)
		}
	}
}

// steps lets the outbox work until it succeeds.
func (s *scene) steps() {
	s.Helper()
	s.until("the outbox succeeds", func() bool { return s.outbox.Step(s.Context()) == nil })
}

// letters are the dead letters in the stream.
func (s *scene) letters() (all []deadletter.Letter) {
	s.Helper()
	for letter, err := range s.stream.From(s.Context(), 1) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, letter)
	}
	return all
}

// once checks that the stream has exactly one dead letter of each resource, and that each one's story says where.
func (s *scene) once(ids []holdfast.ID) {
	s.Helper()
	places := map[string]uint64{}
	for _, letter := range s.letters() {
		if places[letter.GetTaskId()] != 0 {
			s.Errorf("%s has two dead letters", letter.GetTaskId())
		}
		places[letter.GetTaskId()] = letter.Sequence
	}
	for _, id := range ids {
		if places[id.String()] == 0 {
			s.Errorf("%s has no dead letter", id)
		}
		history, err := s.store.History(s.Context(), id)
		if err != nil {
			s.Fatal(err)
		}
		told := ""
		for _, e := range history.Events {
			if e.Name == deadletter.EventPublished {
				told += e.Request
			}
		}
		if told != fmt.Sprint(places[id.String()]) {
			s.Errorf("the story of %s says %q, its dead letter is %d", id, told, places[id.String()])
		}
	}
	if len(places) != len(ids) {
		s.Errorf("%d dead letters of %d resources", len(places), len(ids))
	}
}

// admin is a client of the stream beside FetchBox.
func (s *scene) admin() jetstream.JetStream {
	s.Helper()
	conn, err := nats.Connect("", s.server.Option())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		s.Fatal(err)
	}
	return js
}
