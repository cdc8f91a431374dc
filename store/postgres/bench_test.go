package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
)

// BENCH_DATABASE_URL names a server with known settings; without it the benchmarks use the database of the tests.
func benchStore(b *testing.B) (*postgres.Store, *meter) {
	url := os.Getenv("BENCH_DATABASE_URL")
	if url == "" {
		url = pgtest.Database(b)
	}
	s, err := postgres.Open(context.Background(), postgres.Config{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(context.Background(), "TRUNCATE holdfast_job, holdfast_ready, holdfast_later, holdfast_batch, holdfast_finished, holdfast_unique, holdfast_idempotency"); err != nil {
		b.Fatal(err)
	}
	return s, &meter{B: b, conn: conn}
}

// A meter reports jobs per second, and the CPU time of the server's processes per job where the machine shows it.
type meter struct {
	*testing.B
	conn  *pgx.Conn
	ticks int
	wal   float64
	since time.Time
}

func (m *meter) read() (ticks int, wal float64) {
	rows, _ := m.conn.Query(context.Background(), "SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL")
	pids, _ := pgx.CollectRows(rows, pgx.RowTo[int32])
	for _, pid := range pids {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, rest, ok := strings.Cut(string(stat), ") "); ok {
			fields := strings.Fields(rest)
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			ticks += user + system
		}
	}
	_ = m.conn.QueryRow(context.Background(), "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8").Scan(&wal)
	return ticks, wal
}

func (m *meter) start() {
	m.ticks, m.wal = m.read()
	m.since = time.Now()
	m.ResetTimer()
}

func (m *meter) stop(jobs int) {
	m.StopTimer()
	took := time.Since(m.since)
	ticks, wal := m.read()
	m.ReportMetric(float64(jobs)/took.Seconds(), "jobs/s")
	m.ReportMetric(float64(ticks-m.ticks)*10000/float64(jobs), "db-us/job")
	m.ReportMetric((wal-m.wal)/float64(jobs), "wal-B/job")
}

func drafts(n int) []holdfast.Draft {
	list := make([]holdfast.Draft, n)
	for i := range list {
		list[i] = holdfast.Draft{Kind: "mail", Args: []byte(fmt.Sprintf(`{"to":"someone-%d@example.org","subject":"hello","body":"%s"}`, i, strings.Repeat("x", 120)))}
	}
	return list
}

func BenchmarkDrain(b *testing.B) {
	for _, size := range []int{100, 500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, m := benchStore(b)
			ctx := context.Background()
			total := max(b.N/5000, 1) * 5000
			for n := 0; n < total; n += 5000 {
				if _, err := s.Enqueue(ctx, drafts(5000)); err != nil {
					b.Fatal(err)
				}
			}
			m.start()
			var left atomic.Int64
			left.Store(int64(total))
			var workers sync.WaitGroup
			for w := range 2 {
				workers.Go(func() { drain(b, s, w, size, &left) })
			}
			workers.Wait()
			m.stop(total)
		})
	}
}

func drain(b *testing.B, s *postgres.Store, worker, size int, left *atomic.Int64) {
	for left.Load() > 0 {
		leases, err := s.Claim(context.Background(), store.Claim{Worker: fmt.Sprint("w", worker), Queues: []string{"default"}, Limit: size, Start: size, Lease: time.Minute})
		if err != nil {
			b.Error(err)
			return
		}
		settlements := make([]store.Settlement, len(leases))
		for i, l := range leases {
			settlements[i] = store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete, Took: time.Millisecond}
		}
		if _, err := s.Settle(context.Background(), settlements); err != nil {
			b.Error(err)
			return
		}
		left.Add(int64(-len(leases)))
	}
}

func BenchmarkBulkEnqueue(b *testing.B) {
	s, m := benchStore(b)
	list := drafts(5000)
	m.start()
	n := 0
	for ; n < b.N; n += len(list) {
		if _, err := s.Enqueue(context.Background(), list); err != nil {
			b.Fatal(err)
		}
	}
	m.stop(n)
}

func BenchmarkSingleEnqueue(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s, m := benchStore(b)
			one := drafts(1)
			var left atomic.Int64
			left.Store(int64(b.N))
			m.start()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := s.Enqueue(context.Background(), one); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			m.stop(b.N)
		})
	}
}
