package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// The second act: something many jobs call goes down, is held back, recovers; and the jobs it refused are redriven.

// renderer is what the jobs of the second act call.
const renderer = "renderer"

// pages is how many jobs the outage befalls. Every sixth needs a font that is missing.
const pages = 60

// renderArgs is one page to draw.
type renderArgs struct {
	Page int    `json:"page"`
	Font string `json:"font"`
}

func (renderArgs) Kind() string { return "render" }

// demoBreaker opens soon and recovers soon: nobody wants to watch for a minute.
var demoBreaker = breaker.Config{Window: 10, MinCalls: 6, OpenFor: 3 * time.Second, Probes: 1, Successes: 2, Ramp: 5 * time.Second}

// outage plays the second act.
func (d *demo) outage(ctx context.Context) error {
	d.stage.title("An outage: sixty pages, and the renderer they call goes down")
	jobs, err := d.enqueuePages(ctx)
	if err != nil {
		return err
	}
	show := &breakerShow{demo: d}
	scenes := []struct {
		until string
		ok    func() (bool, error)
		then  func() error
	}{
		{"a few pages are drawn", func() (bool, error) { return d.drawn(ctx, 8) }, func() error {
			d.stage.aside("the renderer goes down: every call answers 503")
			d.gateway.breakRenderer(true)
			return nil
		}},
		{"the breaker opens", func() (bool, error) { return show.in(ctx, breaker.Open) }, func() error { return d.explainHeld(ctx, jobs) }},
		{"the first probe fails, the breaker stays open", func() (bool, error) { return show.past(ctx) }, func() error {
			d.stage.aside("the renderer is repaired")
			d.gateway.breakRenderer(false)
			return nil
		}},
		{"the breaker closes", func() (bool, error) { return show.in(ctx, breaker.Closed) }, func() error { return nil }},
		{"every page is drawn or refused", func() (bool, error) { return d.settledPages(ctx, jobs) }, func() error { return d.redrive(ctx) }},
	}
	for _, scene := range scenes {
		if err := d.patiently(ctx, scene.until, scene.ok); err != nil {
			return err
		}
		if err := scene.then(); err != nil {
			return err
		}
	}
	return nil
}

// patiently looks until something has come to pass.
func (d *demo) patiently(ctx context.Context, what string, ok func() (bool, error)) error {
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the demo was stopped while it waited until %s", what), ctx.Err())
		}
	}
}

func (d *demo) enqueuePages(ctx context.Context) (jobs []holdfast.ID, err error) {
	drafts := make([]holdfast.Draft, pages)
	for i := range drafts {
		args := renderArgs{Page: i + 1, Font: "garamond"}
		if i%6 == 5 {
			args.Font = missingFont
		}
		if drafts[i], err = holdfast.NewDraft(args); err != nil {
			return nil, err
		}
	}
	receipts, err := d.store.Enqueue(ctx, drafts)
	for _, receipt := range receipts {
		jobs = append(jobs, receipt.ID)
	}
	return jobs, err
}

// drawn reports whether so many pages are complete.
func (d *demo) drawn(ctx context.Context, pages int) (bool, error) {
	complete, _, err := d.countPages(ctx)
	return complete >= pages, err
}

func (d *demo) countPages(ctx context.Context) (complete, failed int, err error) {
	counts, err := d.store.Counts(ctx)
	for _, count := range counts {
		switch {
		case count.Kind != renderArgs{}.Kind():
		case count.State == holdfast.Complete:
			complete += count.Jobs
		case count.State == holdfast.Failed:
			failed += count.Jobs
		}
	}
	return complete, failed, err
}

func (d *demo) settledPages(ctx context.Context, jobs []holdfast.ID) (bool, error) {
	complete, failed, err := d.countPages(ctx)
	if err == nil && complete+failed == len(jobs) {
		d.stage.say("%d pages are drawn, none was lost; %d were refused and are dead letters", complete, failed)
		return true, nil
	}
	return false, err
}

// explainHeld asks why a page is not drawn, while the breaker is open.
func (d *demo) explainHeld(ctx context.Context, jobs []holdfast.ID) error {
	for _, id := range jobs {
		explanation, err := d.ops.Explain(ctx, id)
		if err != nil {
			return err
		}
		if explanation.Job.State != holdfast.Queued || explanation.Job.Failures > 0 {
			continue
		}
		d.stage.aside("why is a page that nobody has tried yet not running?")
		for _, reason := range explanation.Reasons {
			d.stage.remark("%s", reason.Text)
			if reason.Remedy != "" {
				d.stage.remark("  %s", reason.Remedy)
			}
		}
		return nil
	}
	return nil
}

// A breakerShow tells how the breaker fares, once a second and whenever it moves.
type breakerShow struct {
	demo *demo
	last breaker.State
	told time.Time
}

func (b *breakerShow) look(ctx context.Context) (now ops.Breaker, err error) {
	list, err := b.demo.ops.Breakers(ctx)
	for _, one := range list {
		if one.Dependency == renderer {
			now = one
		}
	}
	if err != nil || now.State == "" || now.State == breaker.Closed && (b.last == "" || b.last == breaker.Closed) {
		return now, err
	}
	if now.State != b.last || time.Since(b.told) > time.Second {
		b.last, b.told = now.State, time.Now()
		complete, _, err := b.demo.countPages(ctx)
		b.demo.stage.banner(now, complete)
		return now, err
	}
	return now, nil
}

// in reports whether the breaker has come to a state.
func (b *breakerShow) in(ctx context.Context, state breaker.State) (bool, error) {
	now, err := b.look(ctx)
	return now.State == state, err
}

// past reports whether the breaker opened again: a probe has failed.
func (b *breakerShow) past(ctx context.Context) (bool, error) {
	now, err := b.look(ctx)
	return now.State == breaker.Open && now.Opens > 1, err
}

// banner is the line an operator would see on top of every page.
func (s *stage) banner(b ops.Breaker, complete int) {
	colour, about := yellow, ""
	switch b.State {
	case breaker.Open:
		colour, about = red, fmt.Sprintf("%d jobs held, none charged; next probe in %.0f s", b.Behind, max(0, time.Until(b.NextProbe).Seconds()))
	case breaker.HalfOpen:
		about = fmt.Sprintf("one job at a time may try, %d held", b.Behind)
	case breaker.Recovering:
		about = fmt.Sprintf("%d held", b.Behind)
		if b.Lets != nil && b.Lets.Rate != nil {
			about = fmt.Sprintf("lets %.1f jobs a second through, %d wait", b.Lets.Rate.PerSecond, b.Behind)
		}
	case breaker.Closed:
		colour, about = green, "everything runs again"
	}
	why := ""
	if b.State == breaker.Open && b.Why != "" {
		why = s.paint(dim, " ("+b.Why+")")
	}
	s.say("%s  %s %s; %d of %d drawn%s", s.paint(dim, s.clock(time.Now())), s.paint(colour, fmt.Sprintf("breaker %s %-10s", b.Dependency, strings.ToUpper(string(b.State)))), about, complete, pages, why)
}

// redrive sends the refused pages round again, carefully.
func (d *demo) redrive(ctx context.Context) error {
	d.stage.title("A redrive: the refused pages, after the font was installed")
	order := redrive.Order{
		Filter: holdfast.Filter{Kind: renderArgs{}.Kind()}, Canary: 2, PerSecond: 4, StopAbove: 0.2, Actor: "you", Reason: "the font is installed",
	}
	preview, err := d.ops.PreviewRedrive(ctx, order)
	if err != nil {
		return err
	}
	d.stage.say("dry run         %d eligible, %d not; two go first, then four a second, stop when more than 20%% fail again", preview.Eligible, preview.Looked-preview.Eligible)
	d.gateway.installFont()
	id, err := d.ops.StartRedrive(ctx, order)
	if err != nil {
		return err
	}
	last := ""
	return d.patiently(ctx, "the redrive ends", func() (bool, error) {
		r, err := d.ops.Redrive(ctx, id)
		if err != nil {
			return false, err
		}
		if now := fmt.Sprint(r.State, r.Tally); now != last {
			last = now
			d.stage.progress(r)
		}
		return r.State.Ended() && r.Tally.InFlight == 0, nil
	})
}

// progress draws how far a redrive is.
func (s *stage) progress(r ops.Redrive) {
	const width = 30
	done := r.Tally.Complete + r.Tally.Failed
	filled := min(width, width*done/max(r.Eligible, 1))
	s.say("%s  redrive %-8s [%s%s] %d of %d complete, %d failed again, %d under way  %s", s.paint(dim, s.clock(time.Now())), r.State,
		s.paint(green, strings.Repeat("█", filled)), strings.Repeat("·", width-filled), r.Tally.Complete, r.Eligible, r.Tally.Failed, r.Tally.InFlight, s.paint(dim, r.Why))
}
