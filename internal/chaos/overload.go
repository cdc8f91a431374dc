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
	"github.com/holdfastdev/holdfast/api"
)

// An OverloadReport is what a server did that was offered far more than it can take.
type OverloadReport struct {
	Store    string  `json:"store"`
	Seconds  int     `json:"seconds"`
	Each     int     `json:"each"`    // jobs that one request brings
	Peak     float64 `json:"peak"`    // jobs a second, acknowledged to as many clients as do it good, before the overload
	After    float64 `json:"after"`   // the same when it is over
	Offered  float64 `json:"offered"` // jobs a second under overload
	Goodput  float64 `json:"goodput"` // jobs a second, acknowledged under overload
	Ratio    float64 `json:"ratio"`   // of goodput to the mean of peak and after: the machine may have others to serve, too
	Taken    int     `json:"taken"`   // requests acknowledged under overload
	Refused  int     `json:"refused"` // requests told to come back later
	Renewals int     `json:"renewals"`

	TakenP99MS   int64 `json:"taken_p99_ms"`   // how long an acknowledgement took
	RefusedP99MS int64 `json:"refused_p99_ms"` // how long a refusal took
	RenewalMaxMS int64 `json:"renewal_max_ms"` // how long the slowest renewal took

	Lost     int      `json:"lost"`     // acknowledged, and not there
	Rude     int      `json:"rude"`     // answered neither with a receipt nor with 429 or 503 and when to come back
	Unkept   int      `json:"unkept"`   // renewals that did not go through
	Findings int      `json:"findings"` // what the audit found
	Troubles []string `json:"-"`
}

// Clean reports whether every promise was kept that does not depend on speed.
func (r OverloadReport) Clean() bool { return r.Lost+r.Rude+r.Unkept+r.Findings == 0 }

// How a server is overloaded.
const (
	saneClients = 16   // which wait for each answer before they ask again: enough for its peak
	manyClients = 1000 // which together offer tenfold of that
	tenfold     = 10
	holders     = 8 // workers that keep a lease meanwhile
)

// Overload finds out how much a server takes from a sane number of clients, and then offers it ten times as much. Requests bring several jobs, so that
// what is offered is work: the clients share the machine with the server, and nothing is left of it for either where each question costs as much as its answer.
func Overload(ctx context.Context, c Config, each int) (report OverloadReport, err error) {
	err = c.onGround(ctx, func(dir string, g *ground, s holdfast.Store) error {
		f := &fleet{command: c.Command, part: part{Store: g.address, Dir: dir, Seed: c.Seed, Lease: time.Minute}}
		defer f.killAll("")
		if err := f.manServers(ctx, 1); err != nil {
			return err
		}
		report = OverloadReport{Store: g.name, Seconds: c.Seconds, Each: each}
		l := newLoad(f.part.Servers[0], each)
		if err := c.overload(ctx, l, &report); err != nil {
			return err
		}
		c.say("%s: %.0f %% of it went on, %d requests taken and %d refused; looking for %d jobs", report.Store, 100*report.Ratio, report.Taken, report.Refused, each*len(l.all))
		report.Troubles = append(l.troubles, f.troubles()...)
		report.Findings = len(f.troubles()) + f.retireServers(time.Minute)
		return report.weigh(ctx, s, l)
	})
	return report, err
}

// overload measures the peak, what is left of it under overload, and what it is afterwards.
func (c *Config) overload(ctx context.Context, l *load, report *OverloadReport) (err error) {
	if _, err := l.calm(ctx, report, max(time.Duration(c.Seconds)*time.Second/10, time.Second)); err != nil { // to warm up
		return err
	}
	lasting := time.Duration(max(2, c.Seconds/4)) * time.Second
	if report.Peak, err = l.calm(ctx, report, lasting); err != nil {
		return err
	}
	c.say("%s: %.0f jobs a second from %d clients; now %d clients offer %d times that", report.Store, report.Peak, saneClients, manyClients, tenfold)
	kept, err := l.hold(ctx)
	if err != nil {
		return err
	}
	err = l.offer(ctx, manyClients, tenfold*report.Peak/float64(l.each), time.Duration(c.Seconds)*time.Second)
	kept.stop()
	if err != nil {
		return err
	}
	report.Renewals, report.Unkept, report.RenewalMaxMS = kept.renewals, kept.failed, kept.slowest.Milliseconds()
	l.troubles = append(l.troubles, kept.troubles...)
	report.Goodput, report.Offered = l.goodput(), float64(int64(l.each)*l.asked.Load())/l.lasted.Seconds()
	report.Taken, report.Refused, report.Rude = len(l.taken), len(l.refused), report.Rude+l.rude
	report.TakenP99MS, report.RefusedP99MS = p99(l.taken), p99(l.refused)
	report.After, err = l.calm(ctx, report, lasting)
	report.Ratio = report.Goodput / max(1, (report.Peak+report.After)/2)
	return err
}

// calm is how many jobs a second are acknowledged to a sane number of clients.
func (l *load) calm(ctx context.Context, report *OverloadReport, lasting time.Duration) (float64, error) {
	err := l.offer(ctx, saneClients, 0, lasting)
	report.Rude += l.rude
	return l.goodput(), err
}

func (l *load) goodput() float64 { return float64(l.each*len(l.taken)) / l.lasted.Seconds() }

// weigh compares what is there with what was acknowledged: by number, as every request was answered, and one job of each request by name.
func (r *OverloadReport) weigh(ctx context.Context, s holdfast.Store, l *load) error {
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
		r.Troubles = append(r.Troubles, fmt.Sprintf("%d jobs were acknowledged, and %d are there", l.each*len(l.all), there))
	}
	for _, id := range l.all {
		if _, err := s.Job(ctx, id); err != nil {
			r.Lost++
			r.Troubles = append(r.Troubles, fmt.Sprintf("job %s was acknowledged and is gone: %v", id, err))
		}
	}
	findings, err := s.Audit(ctx)
	for _, f := range findings {
		r.Findings++
		r.Troubles = append(r.Troubles, fmt.Sprintf("audit: %s: %s %s", f.Rule, f.Job, f.Detail))
	}
	if r.Taken == 0 {
		return errors.Join(err, errNothing)
	}
	return err
}

// A load is what clients offer one server, and what they were answered.
type load struct {
	address string
	each    int
	body    []byte
	asked   atomic.Int64
	lasted  time.Duration

	mu       sync.Mutex
	all      []holdfast.ID // one of each request that was acknowledged since the beginning
	taken    []time.Duration
	refused  []time.Duration
	rude     int
	troubles []string
}

func newLoad(address string, each int) *load {
	drafts := slices.Repeat([]string{fmt.Sprintf(`{"kind":%q,"queue":"load"}`, loadKind)}, each)
	return &load{address: address, each: each, body: []byte("[" + strings.Join(drafts, ",") + "]")}
}

// offer lets clients enqueue for a while: each as fast as it is answered, or all together so many times a second.
func (l *load) offer(ctx context.Context, clients int, perSecond float64, lasting time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.asked.Store(0)
	l.taken, l.refused, l.rude = nil, nil, 0 // what was acknowledged is never forgotten
	lines := make([]*wire, 0, clients)
	defer func() {
		for _, w := range lines {
			w.close()
		}
	}()
	for range clients {
		w, err := dialWire(ctx, l.address)
		if err != nil {
			return err
		}
		lines = append(lines, w)
	}
	begun := time.Now()
	var turn atomic.Int64
	var work sync.WaitGroup
	for _, w := range lines {
		work.Go(func() {
			for ctx.Err() == nil && time.Since(begun) < lasting {
				if perSecond > 0 {
					at := time.Duration(float64(turn.Add(1)) / perSecond * float64(time.Second))
					if at > lasting {
						return
					}
					pause(ctx, at-time.Since(begun))
				}
				l.one(w)
			}
		})
	}
	work.Wait()
	l.lasted = time.Since(begun)
	return nil
}

// one offers jobs once.
func (l *load) one(w *wire) {
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
		if l.rude++; l.rude < 20 {
			l.troubles = append(l.troubles, fmt.Sprintf("a client was answered with %d, to come back after %q, %v", status, after, err))
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
