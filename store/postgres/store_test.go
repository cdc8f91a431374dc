package postgres_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A world is one database with a store, and a connection of the test beside it.
type world struct {
	testing.TB
	ctx   context.Context
	url   string
	store *postgres.Store
	conn  *pgx.Conn
}

func newWorld(t testing.TB) *world { return newWorldAt(t, storefixture.Database(t)) }

// newWorldAt gives a test ten minutes: the largest takes seconds on a machine that does nothing else.
func newWorldAt(t testing.TB, url string) *world {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{TB: t, ctx: ctx, url: url}
	w.store = w.open(postgres.Config{URL: w.url})
	conn, err := pgx.Connect(ctx, w.url)
	w.ok(err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	w.conn = conn
	return w
}

func (w *world) open(c postgres.Config) *postgres.Store {
	w.Helper()
	s, err := postgres.Open(w.ctx, c)
	w.ok(err)
	w.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) enqueue(to holdfast.Enqueuer, drafts ...holdfast.Draft) []holdfast.Receipt {
	w.Helper()
	receipts, err := to.Enqueue(w.ctx, drafts)
	w.ok(err)
	return receipts
}

func (w *world) claim(limit int) []store.Lease {
	w.Helper()
	leases, err := w.store.Claim(w.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: limit, Start: limit, Lease: time.Minute})
	w.ok(err)
	return leases
}

func (w *world) exec(text string, args ...any) {
	w.Helper()
	_, err := w.conn.Exec(w.ctx, text, args...)
	w.ok(err)
}

func (w *world) count(text string, args ...any) (n int) {
	w.Helper()
	w.ok(w.conn.QueryRow(w.ctx, text, args...).Scan(&n))
	return n
}

// until polls until a condition holds, such as an action of another session.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	for !holds() {
		if w.ctx.Err() != nil {
			w.Fatalf("never happened: %s", what)
		}
	}
}

func complete(l store.Lease) store.Settlement {
	return store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete, Took: time.Millisecond}
}

func TestManyProcessesThatStartTogetherMigrateOnce(t *testing.T) {
	url := pgtest.Database(t)
	var all sync.WaitGroup
	failures := make(chan error, 8)
	for range 8 {
		all.Go(func() {
			s, err := postgres.Open(context.Background(), postgres.Config{URL: url})
			if err == nil {
				err = s.Close()
			}
			failures <- err
		})
	}
	all.Wait()
	for range 8 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	w := newWorld(t)
	w.exec("INSERT INTO holdfast_migration (version) VALUES (1000)")
	_, err := postgres.Open(w.ctx, postgres.Config{URL: w.url})
	if !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "newer holdfast to version 1000, which needs a program that knows version 1000 or later; this program knows version ") {
		t.Fatalf("got %v", err)
	}
}

func TestASchemaFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	w := newWorld(t)
	w.exec("DELETE FROM holdfast_migration WHERE version > 5")
	w.exec("UPDATE holdfast_migration SET version = 4")
	_, err := postgres.Open(w.ctx, postgres.Config{URL: w.url})
	if !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "before the first release (schema 4, the oldest that can be upgraded is ") {
		t.Fatalf("got %v", err)
	}
}

func TestAWrongAddressIsRefusedWithoutThePassword(t *testing.T) {
	for url, kind := range map[string]error{
		"postgres://someone:hush-hush@127.0.0.1:1/none":               holdfast.ErrUnavailable,
		"postgres://someone:hush-hush@127.0.0.1:99999999/none":        holdfast.ErrInvalid,
		"postgres://someone:hush-hush@127.0.0.1:1/none?sslmode=maybe": holdfast.ErrInvalid,
	} {
		_, err := postgres.Open(context.Background(), postgres.Config{URL: url})
		if !errors.Is(err, kind) {
			t.Errorf("%s: got %v", url, err)
		}
		for shown := err; shown != nil; shown = errors.Unwrap(shown) {
			if text := fmt.Sprintf("%v %+v", shown, shown); strings.Contains(text, "hush-hush") || strings.Contains(text, "\n") {
				t.Errorf("%s: shows %q", url, text)
			}
		}
	}
}

// good_job#52, #482, river#1153: code that depended on the session or the protocol mode broke behind a pooler.
func TestEveryProtocolModeDoesWhatTheModelDoes(t *testing.T) {
	for _, mode := range []string{"simple_protocol", "exec", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			storetest.Check(t, storetest.Harness{Open: func(t testing.TB) *storetest.Subject {
				base := storefixture.Database(t)
				separator := "?"
				if strings.Contains(base, "?") {
					separator = "&"
				}
				return storefixture.PostgresAt(t, base+separator+"default_query_exec_mode="+mode)
			}}, soak.Pick("PostgreSQL: random sequences in each protocol mode", 10, 25))
		})
	}
}

var awkward = holdfast.Draft{
	Kind: "mail", Owner: `o"\{,}'`, Tags: []string{`a,b`, `"c"`, `\N`, `NULL`, "ü € 🙂"}, MaxAttempts: 7, Priority: -3,
	Args: json.RawMessage("{\"a\": \"\\\"\\\\ \\t \\u0000 {},'$1 ü\",\n\t\"b\":[1.50, null]}\r\n"), ExpireIn: time.Hour,
}

func TestFactsAreStoredExactlyByEveryInsertPath(t *testing.T) {
	w := newWorld(t)
	single := w.enqueue(w.store, awkward)
	many := make([]holdfast.Draft, 150)
	for i := range many {
		many[i] = awkward
	}
	bulk := w.enqueue(w.store, many...)
	tx, err := w.conn.Begin(w.ctx)
	w.ok(err)
	guest := w.enqueue(w.store.In(tx), awkward)
	w.ok(tx.Commit(w.ctx))
	leases := w.claim(1000)
	if len(leases) != 152 {
		t.Fatalf("claimed %d", len(leases))
	}
	seen := map[holdfast.ID]bool{}
	for _, l := range leases {
		seen[l.ID] = true
		if string(l.Args) != string(awkward.Args) || l.Owner != awkward.Owner || strings.Join(l.Tags, "|") != strings.Join(awkward.Tags, "|") ||
			l.MaxAttempts != 7 || l.Priority != -3 || !l.ExpireAt.Equal(l.CreatedAt.Add(time.Hour)) || l.Corrupt != "" {
			t.Fatalf("got %+v", l)
		}
	}
	for _, r := range append(append(single, bulk...), guest...) {
		if !seen[r.ID] {
			t.Fatalf("job %v was not claimed", r.ID)
		}
	}
}

// callerTransactions are the kinds of transactions that a caller can pass, each with a function that ends it.
func (w *world) callerTransactions() map[string]func() (any, func(bool) error) {
	db, err := sql.Open("pgx", w.url)
	w.ok(err)
	w.Cleanup(func() { _ = db.Close() })
	return map[string]func() (any, func(bool) error){
		"pgx": func() (any, func(bool) error) {
			tx, err := w.conn.Begin(w.ctx)
			w.ok(err)
			return tx, func(commit bool) error {
				if commit {
					return tx.Commit(w.ctx)
				}
				return tx.Rollback(w.ctx)
			}
		},
		"database/sql": func() (any, func(bool) error) {
			tx, err := db.BeginTx(w.ctx, nil)
			w.ok(err)
			return tx, func(commit bool) error {
				if commit {
					return tx.Commit()
				}
				return tx.Rollback()
			}
		},
	}
}

func TestEveryKindOfTransactionListsItsJobs(t *testing.T) {
	w := newWorld(t)
	for name, begin := range w.callerTransactions() {
		t.Run(name, func(t *testing.T) {
			tx, end := begin()
			d := holdfast.Draft{Kind: "list-" + name[:3], Args: json.RawMessage(`{"b": [1.5, "ü"]}`), Owner: "acme", Tags: []string{"x", "y \"z\""}, MaxAttempts: 7, ExpireIn: time.Hour}
			id := w.enqueue(w.store.In(tx), d)[0].ID
			seen, _, err := w.store.In(tx).Jobs(w.ctx, store.Filter{Kind: d.Kind})
			w.ok(err)
			if len(seen) != 1 || seen[0].ID != id {
				t.Fatalf("listed %+v", seen)
			}
			w.ok(end(true))
			stored, err := w.store.Job(w.ctx, id)
			w.ok(err)
			seen[0].AsOf = stored.AsOf
			if diff := cmp.Diff(stored, seen[0]); diff != "" {
				t.Errorf("the transaction saw another job than the store (-store +transaction):\n%s", diff)
			}
		})
	}
}

func TestJobsOfACallersTransactionExistIfItCommits(t *testing.T) {
	w := newWorld(t)
	for name, begin := range w.callerTransactions() {
		t.Run(name, func(t *testing.T) {
			tx, end := begin()
			plain := w.enqueue(w.store.In(tx), holdfast.Draft{Kind: "mail"})[0]
			keyed := w.enqueue(w.store.In(tx), holdfast.Draft{Kind: "mail", UniqueKey: name, IdempotencyKey: name})[0]
			twin := w.enqueue(w.store.In(tx), holdfast.Draft{Kind: "mail", UniqueKey: name})[0]
			if !twin.Existing || twin.ID != keyed.ID {
				t.Fatalf("the draft with a held key got %+v", twin)
			}
			// A refused call changes nothing, and the caller's transaction can still be used.
			for _, bad := range []holdfast.Draft{{Kind: "mail", IdempotencyKey: name}, {Kind: "mail", ID: plain.ID}} {
				_, err := w.store.In(tx).Enqueue(w.ctx, []holdfast.Draft{{Kind: "other", UniqueKey: "gone-" + name}, bad})
				if !errors.Is(err, holdfast.ErrConflict) {
					t.Fatalf("got %v", err)
				}
			}
			w.ok(end(true))
			tx, end = begin()
			gone := w.enqueue(w.store.In(tx), holdfast.Draft{Kind: "mail", UniqueKey: "back-" + name})[0]
			w.ok(end(false))
			for _, id := range []holdfast.ID{plain.ID, keyed.ID} {
				_, err := w.store.Job(w.ctx, id)
				w.ok(err)
			}
			if _, err := w.store.Job(w.ctx, gone.ID); !errors.Is(err, holdfast.ErrNotFound) {
				t.Fatalf("the rolled back job: %v", err)
			}
			if n := w.count("SELECT count(*) FROM holdfast_unique WHERE key LIKE '%' || $1 AND key <> $1", name); n != 0 {
				t.Fatalf("%d keys of refused calls are left", n)
			}
		})
	}
	if _, err := w.store.In("a string").Enqueue(w.ctx, []holdfast.Draft{{Kind: "mail"}}); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "string") {
		t.Fatalf("got %v", err)
	}
}

func TestSettingsThatMayLoseAcknowledgedJobsAreNamed(t *testing.T) {
	address := pgtest.Database(t)
	for setting, want := range map[string]bool{"on": false, "off": true} {
		with, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		query := with.Query()
		query.Set("synchronous_commit", setting)
		with.RawQuery = query.Encode()
		s, err := postgres.Open(t.Context(), postgres.Config{URL: with.String()})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(s.Warnings(t.Context()), "\n")
		if strings.Contains(got, "synchronous_commit is off") != want {
			t.Errorf("with %s: %s", setting, got)
		}
		_ = s.Close()
	}
}

// leased enqueues a job and claims it, for a lease of that duration.
func (w *world) leased(lease time.Duration) store.Lease {
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"})
	leases, err := w.store.Claim(w.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: lease})
	w.ok(err)
	if len(leases) != 1 {
		w.Fatalf("claimed %d jobs", len(leases))
	}
	return leases[0]
}

func completion(l store.Lease) store.Settlement {
	return store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, Queue: "default", To: holdfast.Complete, Took: time.Millisecond, Result: json.RawMessage(`{"n": 1}`)}
}

func TestEveryKindOfTransactionCompletesItsJob(t *testing.T) {
	w := newWorld(t)
	w.exec("CREATE TABLE ledger (job uuid)")
	for name, begin := range w.callerTransactions() {
		t.Run(name, func(t *testing.T) {
			for _, commit := range []bool{false, true} {
				lease := w.leased(time.Minute)
				tx, end := begin()
				answers, err := w.store.In(tx).Complete(w.ctx, []store.Settlement{completion(lease), {Job: lease.ID, Batch: lease.Batch, Token: 7, To: holdfast.Complete}})
				w.ok(err)
				w.ok(answers[0])
				if !errors.Is(answers[1], holdfast.ErrLeaseLost) {
					t.Errorf("a lease that is not held: %v", answers[1])
				}
				w.enqueue(w.store.In(tx), holdfast.Draft{Kind: "next", Queue: "later"}) // the refusal left the transaction usable
				w.ok(end(commit))
				answers, err = w.store.Settle(w.ctx, []store.Settlement{func() store.Settlement { s := completion(lease); s.Confirm = true; return s }()})
				w.ok(err)
				if commit != (answers[0] == nil) {
					t.Errorf("commit %v: the question whether the job was completed is answered with %v", commit, answers[0])
				}
				if !commit {
					answers, err = w.store.Settle(w.ctx, []store.Settlement{completion(lease)})
					w.ok(errors.Join(append(answers, err)...))
				}
				if job, err := w.store.Job(w.ctx, lease.ID); err != nil || job.State != holdfast.Complete || string(job.Result) != `{"n": 1}` {
					t.Errorf("%+v %v", job, err)
				}
			}
		})
	}
}

// Leases of the batch cannot be renewed or reclaimed while a transaction in which one of its jobs completes is open.
func TestATransactionThatHangsAfterItsCompletionIsEndedByTheDatabase(t *testing.T) {
	w := newWorld(t)
	lease := w.leased(4 * time.Second)
	conn, err := pgx.Connect(w.ctx, w.url)
	w.ok(err)
	defer conn.Close(w.ctx)
	tx, err := conn.Begin(w.ctx)
	w.ok(err)
	answers, err := w.store.In(tx).Complete(w.ctx, []store.Settlement{completion(lease)})
	w.ok(errors.Join(append(answers, err)...))
	renewed, err := w.store.Renew(w.ctx, []store.Renewal{{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}}}, time.Minute) // waits for the end of the transaction
	w.ok(err)
	if len(renewed.Lost) > 0 {
		t.Error("the lease is lost, although the transaction was not committed")
	}
	if err := tx.Commit(w.ctx); err == nil {
		t.Error("the transaction was committed after the database had ended it")
	}
	if job, err := w.store.Job(w.ctx, lease.ID); err != nil || job.State != holdfast.Processing {
		t.Errorf("%+v %v", job, err)
	}
}

func TestAShorterLimitOfTheCallersTransactionStays(t *testing.T) {
	w := newWorld(t)
	for limit, want := range map[string]string{"0": "1500", "300ms": "300ms", "1h": "1500"} {
		lease := w.leased(6 * time.Second)
		tx, err := w.conn.Begin(w.ctx)
		w.ok(err)
		_, err = tx.Exec(w.ctx, "SET LOCAL idle_in_transaction_session_timeout = '"+limit+"'")
		w.ok(err)
		answers, err := w.store.In(tx).Complete(w.ctx, []store.Settlement{completion(lease)})
		w.ok(errors.Join(append(answers, err)...))
		var got string
		w.ok(tx.QueryRow(w.ctx, "SHOW idle_in_transaction_session_timeout").Scan(&got))
		if want == "300ms" && got != want || want != "300ms" && !strings.HasPrefix(got, "1") {
			t.Errorf("with a limit of %s it is %s", limit, got)
		}
		w.ok(tx.Commit(w.ctx))
	}
}

func TestCompletionsInOpenTransactionsDoNotWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	var open []pgx.Tx
	for range 3 { // all count in the same minute
		lease := w.leased(time.Minute)
		conn, err := pgx.Connect(w.ctx, w.url)
		w.ok(err)
		defer conn.Close(w.ctx)
		tx, err := conn.Begin(w.ctx)
		w.ok(err)
		answers, err := w.store.In(tx).Complete(w.ctx, []store.Settlement{completion(lease)})
		w.ok(errors.Join(append(answers, err)...))
		open = append(open, tx)
	}
	lease := w.leased(time.Minute) // a settlement of the store does not wait for them either
	answers, err := w.store.Settle(w.ctx, []store.Settlement{completion(lease)})
	w.ok(errors.Join(append(answers, err)...))
	for _, tx := range open {
		w.ok(tx.Commit(w.ctx))
	}
	trends, err := w.store.Trends(w.ctx, time.Hour, time.Hour)
	w.ok(err)
	complete := 0
	for _, step := range trends {
		complete += step.Complete
	}
	if complete != 4 {
		t.Errorf("%d completions were counted, want 4", complete)
	}
}

// The table of locks of a server with default settings has about 7800 entries, for all transactions together.
func TestAnEnqueueIntoThousandsOfLinesAndKeysTakesABoundedNumberOfLocks(t *testing.T) {
	const drafts, locks = 10_000, 4096
	for name, change := range map[string]func(d *holdfast.Draft, key string){
		"order keys": func(d *holdfast.Draft, key string) { d.Order = key },
		"replaced":   func(d *holdfast.Draft, key string) { d.UniqueKey, d.Replace = key, &holdfast.Replace{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			many := make([]holdfast.Draft, drafts)
			for i := range many {
				many[i] = holdfast.Draft{Kind: "mail"}
				change(&many[i], fmt.Sprint("key-", i))
			}
			tx, err := w.conn.Begin(w.ctx)
			w.ok(err)
			defer tx.Rollback(w.ctx)
			w.enqueue(w.store.In(tx), many...)
			var held int
			w.ok(tx.QueryRow(w.ctx, "SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()").Scan(&held))
			if held < locks/2 || held > locks {
				t.Errorf("the transaction holds %d advisory locks, want at most %d", held, locks)
			}
		})
	}
}
