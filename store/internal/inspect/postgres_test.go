package inspect

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// emptyPostgres is a Querier that only shows that PostgreSQL accepts a statement. The results are checked by the laws
// in storetest, which run on both stores.
type emptyPostgres struct{ conn *pgx.Conn }

func (p emptyPostgres) Now(context.Context) (time.Time, error) { return noon, nil }

func (p emptyPostgres) Query(ctx context.Context, text string, args []any, _ func(Row) error) error {
	given := make([]any, len(args))
	for n, arg := range args {
		if id, is := arg.(holdfast.ID); is {
			arg = [16]byte(id)
		}
		given[n] = arg
	}
	rows, err := p.conn.Query(ctx, text, given...)
	if err != nil {
		return errors.Join(err, errors.New(text))
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return errors.Join(err, errors.New(text))
	}
	return nil
}

func TestPostgresAcceptsEveryStatement(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, step := range sqltext.Migrations(Postgres) {
		if _, err := conn.Exec(t.Context(), step.SQL); err != nil {
			t.Fatal(err)
		}
	}
	i := New(emptyPostgres{conn}, Postgres)
	ask := func(what string, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	cursor := "AQAAAAAAcACAAAAAAAAAAQ"
	for _, state := range []holdfast.State{"", holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled} {
		for _, f := range []store.Filter{
			{}, {Kind: "k", Queue: "q"}, {Owner: "o", Tag: "t"}, {Code: "C"}, {Fingerprint: "f", Code: "C", Kind: "k"}, {OlderThan: 1, NewerThan: 1}, {DeadLetters: true},
			{Dependency: "d"}, {Generation: 2}, {Redrive: id(1)}, {Group: id(1)}, {Group: id(1), Redrive: id(1), Generation: 1, Owner: "o", Cursor: cursor}, {Redrive: id(1), Generation: 1, Dependency: "d", Owner: "o", Tag: "t", Code: "C", Cursor: cursor},
			{Kind: "k", Queue: "q", Owner: "o", Tag: "t", Code: "C", Fingerprint: "f", OlderThan: 1, NewerThan: 1, Cursor: cursor, Limit: 7},
		} {
			f.State = state
			_, _, err := i.Jobs(t.Context(), f)
			ask("jobs", err)
		}
	}
	_, err = i.Job(t.Context(), id(1))
	ask("job", err)
	for _, name := range []string{"inspect_attempts", "inspect_late_results", "inspect_job_events", "inspect_ahead"} {
		ask(name, i.q.Query(t.Context(), i.statements[name], []any{id(1)}, nil))
	}
	_, err = i.Counts(t.Context())
	ask("counts", err)
	askTheAnalyst(t, i, ask)
	_, err = i.Holds(t.Context())
	ask("holds", err)
	_, err = i.Records(t.Context(), "breaker")
	ask("records", err)
	_, err = i.Workers(t.Context())
	ask("workers", err)
	_, err = i.CheckIntegrity(t.Context())
	ask("audit", err)
}

func askTheAnalyst(t *testing.T, i *Inspector, ask func(string, error)) {
	for _, h := range []store.Hold{{Queue: "q"}, {Kind: "k*"}, {Owner: "o*", Retries: true}, {Dependency: "d"}, {Dependency: "d*"}, {Tag: "t"}} {
		_, err := i.CountHeld(t.Context(), h)
		ask("behind", err)
	}
	for _, f := range []store.ErrorFilter{{}, {Fingerprint: "f", Status: store.StatusOpen, Code: "C", Kind: "k", Cursor: "AAAAAAAAAABm"}} {
		_, _, err := i.ErrorGroups(t.Context(), f)
		ask("error groups", err)
	}
	ask("counts", i.addCounts(t.Context(), []store.ErrorGroup{{Fingerprint: "f"}, {Fingerprint: "g"}}, noon))
	_, err := i.Events(t.Context(), "breaker/gateway", 5)
	ask("events", err)
	_, err = i.RetryStats(t.Context(), time.Hour)
	ask("retry stats", err)
}
