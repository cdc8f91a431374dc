package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// An OverloadReport is the result of an overload run.
type OverloadReport struct {
	Store    string  `json:"store"`
	Seconds  int     `json:"seconds"`
	Each     int     `json:"each"`    // jobs in each request
	Peak     float64 `json:"peak"`    // jobs per second that were acknowledged to a steady number of clients before the overload
	After    float64 `json:"after"`   // the same after the overload
	Offered  float64 `json:"offered"` // jobs per second that were sent under overload
	Goodput  float64 `json:"goodput"` // jobs per second that were acknowledged under overload
	Ratio    float64 `json:"ratio"`   // of goodput to the throughput just before and after: the median of the rounds
	Taken    int     `json:"taken"`   // requests acknowledged under overload
	Refused  int     `json:"refused"` // requests refused with Retry-After
	Renewals int     `json:"renewals"`

	TakenP99MS   int64 `json:"taken_p99_ms"`   // latency of acknowledged requests
	RefusedP99MS int64 `json:"refused_p99_ms"` // latency of refused requests
	RenewalMaxMS int64 `json:"renewal_max_ms"` // latency of the slowest renewal

	Lost     int      `json:"lost"`     // acknowledged jobs that are not in the store
	Rude     int      `json:"rude"`     // requests answered neither with receipts nor with 429 or 503 and Retry-After
	Unkept   int      `json:"unkept"`   // failed renewals
	Findings int      `json:"findings"` // of the integrity check
	Troubles []string `json:"-"`
}

// Clean reports whether every guarantee that does not depend on speed was kept.
func (r OverloadReport) Clean() bool { return r.Lost+r.Rude+r.Unkept+r.Findings == 0 }

// The load of an overload run.
const (
	steadyClients   = 16   // each waits for its answer before it sends again: enough for the peak
	overloadClients = 1000 // together they send ten times the peak
	overloadFactor  = 10
	holderCount     = 8 // workers that renew a lease during the overload
)

// Overload measures the peak throughput of a server with a small number of clients, then sends ten times as much. Each request has several jobs, so that the
// load is mostly work of the server: the clients run on the same machine, and with small requests they would need as much of it as the server.
func Overload(ctx context.Context, c Config, each int) (report OverloadReport, err error) {
	err = c.withDatabase(ctx, func(dir string, db *database, s store.Store) error {
		f := &fleet{command: c.Command, spec: childSpec{Store: db.address, Dir: dir, Seed: c.Seed, Lease: time.Minute}}
		defer f.killAll("")
		if err := f.startServers(ctx, 1); err != nil {
			return err
		}
		report = OverloadReport{Store: db.name, Seconds: c.Seconds, Each: each}
		l := newLoad(f.spec.Servers[0], each)
		if err := c.overload(ctx, l, &report); err != nil {
			return err
		}
		c.logf("%s: goodput is %.0f %% of the peak, %d requests accepted and %d refused; checking %d jobs", report.Store, 100*report.Ratio, report.Taken, report.Refused, each*len(l.all))
		report.Troubles = append(l.problems, f.unexpectedExits()...)
		report.Findings = len(f.unexpectedExits()) + f.stopServers(time.Minute)
		return report.verify(ctx, s, l)
	})
	return report, err
}

// overload alternates between a steady and ten times the load, in rounds of about 15 seconds. Each round is compared with the throughput just before and just
// after it, and the median counts: other load on the machine, which comes and goes in the course of a minute, then affects both sides alike.
func (c *Config) overload(ctx context.Context, l *load, report *OverloadReport) error {
	l.measure(ctx, report, max(time.Duration(c.Seconds)*time.Second/10, time.Second)) // warm-up
	rounds := max(1, c.Seconds/15)
	steady := max(2*time.Second, time.Duration(c.Seconds)*time.Second/time.Duration(4*rounds))
	before := l.measure(ctx, report, steady)
	report.Peak = before
	c.logf("%s: %.0f jobs per second from %d clients; now %d clients send %d times that", report.Store, report.Peak, steadyClients, overloadClients, overloadFactor)
	kept, err := l.holdLeases(ctx)
	if err != nil {
		return err
	}
	defer kept.stop()
	sum := overloadSum{each: l.each}
	for range rounds {
		l.offer(ctx, overloadClients, overloadFactor*before/float64(l.each), time.Duration(c.Seconds)*time.Second/time.Duration(rounds))
		goodput := l.goodput()
		sum.add(l)
		report.Rude += l.invalid
		report.After = l.measure(ctx, report, steady)
		sum.ratios = append(sum.ratios, goodput/max(1, (before+report.After)/2))
		before = report.After
	}
	kept.stop()
	report.Renewals, report.Unkept, report.RenewalMaxMS = kept.renewals, kept.failed, kept.slowest.Milliseconds()
	l.problems = append(l.problems, kept.problems...)
	sum.report(report)
	return nil
}

// An overloadSum adds up the rounds of an overload run.
type overloadSum struct {
	each           int
	asked          int64
	lasted         time.Duration
	taken, refused []time.Duration
	ratios         []float64
}

func (s *overloadSum) add(l *load) {
	s.asked += l.asked.Load()
	s.lasted += l.lasted
	s.taken, s.refused = append(s.taken, l.taken...), append(s.refused, l.refused...)
}

func (s *overloadSum) report(r *OverloadReport) {
	r.Goodput = float64(s.each*len(s.taken)) / s.lasted.Seconds()
	r.Offered = float64(int64(s.each)*s.asked) / s.lasted.Seconds()
	r.Taken, r.Refused = len(s.taken), len(s.refused)
	r.TakenP99MS, r.RefusedP99MS = p99(s.taken), p99(s.refused)
	slices.Sort(s.ratios)
	r.Ratio = (s.ratios[(len(s.ratios)-1)/2] + s.ratios[len(s.ratios)/2]) / 2
}

// measure measures how many jobs per second are acknowledged to a small number of clients.
func (l *load) measure(ctx context.Context, report *OverloadReport, duration time.Duration) float64 {
	l.offer(ctx, steadyClients, 0, duration)
	report.Rude += l.invalid
	return l.goodput()
}

func (l *load) goodput() float64 { return float64(l.each*len(l.taken)) / l.lasted.Seconds() }

// verify compares the store with what was acknowledged: the number of jobs, and one job of each request by its id. Then it runs the integrity check.
func (r *OverloadReport) verify(ctx context.Context, s store.Store, l *load) error {
	counts, err := s.Counts(ctx)
	if err != nil {
		return err
	}
	there := 0
	for _, n := range counts {
		if n.Kind == loadKind {
			there += n.Jobs
		}
	}
	if r.Lost = max(0, l.each*len(l.all)-there); r.Lost > 0 || r.Rude == 0 && there != l.each*len(l.all) {
		r.Findings++
		r.Troubles = append(r.Troubles, fmt.Sprintf("%d jobs were acknowledged, and %d are in the store", l.each*len(l.all), there))
	}
	for _, id := range l.all {
		if _, err := s.Job(ctx, id); err != nil {
			r.Lost++
			r.Troubles = append(r.Troubles, fmt.Sprintf("job %s was acknowledged and cannot be read: %v", id, err))
		}
	}
	findings, err := s.CheckIntegrity(ctx)
	for _, f := range findings {
		r.Findings++
		r.Troubles = append(r.Troubles, fmt.Sprintf("integrity check: %s: %s %s", f.Rule, f.Job, f.Detail))
	}
	if r.Taken == 0 {
		return errors.Join(err, errTooShort)
	}
	return err
}

// A load sends requests of many clients to one server and records the answers.
type load struct {
	address string
	each    int
	body    []byte
	asked   atomic.Int64
	lasted  time.Duration

	mu       sync.Mutex
	all      []holdfast.ID // one job of each acknowledged request of the run
	taken    []time.Duration
	refused  []time.Duration
	invalid  int
	problems []string
}

func newLoad(address string, each int) *load {
	drafts := slices.Repeat([]string{fmt.Sprintf(`{"kind":%q,"queue":"load"}`, loadKind)}, each)
	return &load{address: address, each: each, body: []byte("[" + strings.Join(drafts, ",") + "]")}
}

// offer lets clients enqueue for a duration: each as fast as it is answered, or all together at a rate per second.
func (l *load) offer(ctx context.Context, clients int, perSecond float64, duration time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.asked.Store(0)
	l.taken, l.refused, l.invalid = nil, nil, 0 // l.all is kept
	lines := make([]*rawClient, 0, clients)
	defer func() {
		for _, w := range lines {
			w.close()
		}
	}()
	for range clients { // each connects with its first request: the server closes a connection that sends nothing for 5 seconds
		lines = append(lines, &rawClient{address: l.address})
	}
	begun := time.Now()
	var turn atomic.Int64
	var work sync.WaitGroup
	for _, w := range lines {
		work.Go(func() {
			for ctx.Err() == nil && time.Since(begun) < duration {
				if perSecond > 0 {
					at := time.Duration(float64(turn.Add(1)) / perSecond * float64(time.Second))
					if at > duration {
						return
					}
					sleep(ctx, at-time.Since(begun))
				}
				l.enqueueOnce(w)
			}
		})
	}
	work.Wait()
	l.lasted = time.Since(begun)
}

// enqueueOnce sends one request.
func (l *load) enqueueOnce(w *rawClient) {
	var out api.BulkOut
	l.asked.Add(1)
	begun := time.Now()
	status, after, err := w.post("/v1/jobs/bulk", l.body, &out)
	took := time.Since(begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && status == http.StatusOK && len(out.Receipts) == l.each:
		l.taken, l.all = append(l.taken, took), append(l.all, out.Receipts[len(l.all)%l.each].ID)
	case err == nil && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && after != "":
		l.refused = append(l.refused, took)
	default:
		if l.invalid++; l.invalid < 20 {
			l.problems = append(l.problems, fmt.Sprintf("a client got status %d with Retry-After %q: %v", status, after, err))
		}
	}
}

const loadKind = "chaos.load"

func p99(all []time.Duration) int64 {
	if len(all) == 0 {
		return 0
	}
	slices.SortFunc(all, cmp.Compare[time.Duration])
	return all[len(all)*99/100].Milliseconds()
}
