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

// The second part of the demo: a dependency of many jobs goes down, its breaker holds the jobs, the dependency recovers, and refused jobs are redriven.

// renderer is the dependency of the second part.
const renderer = "renderer"

// pages is the number of jobs during the outage. Every sixth needs a missing font.
const pages = 60

// renderArgs is one page to render.
type renderArgs struct {
	Page int    `json:"page"`
	Font string `json:"font"`
}

func (renderArgs) Kind() string { return "render" }

// demoBreaker opens and recovers quickly, so that the demo is short.
var demoBreaker = breaker.Config{Window: 10, MinCalls: 6, OpenFor: 3 * time.Second, Probes: 1, Successes: 2, Ramp: 5 * time.Second}

// outage runs the second part.
func (d *demo) outage(ctx context.Context) error {
	d.out.title("An outage: sixty pages, and their renderer goes down")
	jobs, err := d.enqueuePages(ctx)
	if err != nil {
		return err
	}
	monitor := &breakerMonitor{demo: d}
	steps := []struct {
		until string
		ok    func() (bool, error)
		then  func() error
	}{
		{"some pages are rendered", func() (bool, error) { return d.rendered(ctx, 8) }, func() error {
			d.out.action("the renderer goes down: every call answers 503")
			d.gateway.breakRenderer(true)
			return nil
		}},
		{"the breaker opens", func() (bool, error) { return monitor.in(ctx, breaker.Open) }, func() error { return d.explainHeld(ctx, jobs) }},
		{"the first probe fails, the breaker stays open", func() (bool, error) { return monitor.reopened(ctx) }, func() error {
			d.out.action("the renderer is repaired")
			d.gateway.breakRenderer(false)
			return nil
		}},
		{"the breaker closes", func() (bool, error) { return monitor.in(ctx, breaker.Closed) }, func() error { return nil }},
		{"every page is rendered or refused", func() (bool, error) { return d.settledPages(ctx, jobs) }, func() error { return d.redrive(ctx) }},
	}
	for _, step := range steps {
		if err := d.waitUntil(ctx, step.until, step.ok); err != nil {
			return err
		}
		if err := step.then(); err != nil {
			return err
		}
	}
	return nil
}

// waitUntil polls until ok reports true.
func (d *demo) waitUntil(ctx context.Context, what string, ok func() (bool, error)) error {
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the demo was stopped while waiting until %s", what), ctx.Err())
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

// rendered reports whether at least this many pages are complete.
func (d *demo) rendered(ctx context.Context, pages int) (bool, error) {
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
		d.out.say("%d pages are rendered, none was lost; %d were refused and are dead letters", complete, failed)
		return true, nil
	}
	return false, err
}

// explainHeld prints why a page is not rendered while the breaker is open.
func (d *demo) explainHeld(ctx context.Context, jobs []holdfast.ID) error {
	for _, id := range jobs {
		explanation, err := d.ops.Explain(ctx, id)
		if err != nil {
			return err
		}
		if explanation.Job.State != holdfast.Queued || explanation.Job.Failures > 0 {
			continue
		}
		d.out.action("why is a page without any attempt not running?")
		for _, reason := range explanation.Reasons {
			d.out.detail("%s", reason.Text)
			if reason.Remedy != "" {
				d.out.detail("  %s", reason.Remedy)
			}
		}
		return nil
	}
	return nil
}

// A breakerMonitor prints the breaker of the renderer once a second and whenever its state changes.
type breakerMonitor struct {
	demo    *demo
	last    breaker.State
	printed time.Time
}

func (b *breakerMonitor) read(ctx context.Context) (now ops.Breaker, err error) {
	list, err := b.demo.ops.Breakers(ctx)
	for _, one := range list {
		if one.Dependency == renderer {
			now = one
		}
	}
	if err != nil || now.State == "" || now.State == breaker.Closed && (b.last == "" || b.last == breaker.Closed) {
		return now, err
	}
	if now.State != b.last || time.Since(b.printed) > time.Second {
		b.last, b.printed = now.State, time.Now()
		complete, _, err := b.demo.countPages(ctx)
		b.demo.out.banner(now, complete)
		return now, err
	}
	return now, nil
}

// in reports whether the breaker is in a state.
func (b *breakerMonitor) in(ctx context.Context, state breaker.State) (bool, error) {
	now, err := b.read(ctx)
	return now.State == state, err
}

// reopened reports whether the breaker has opened again because a probe failed.
func (b *breakerMonitor) reopened(ctx context.Context) (bool, error) {
	now, err := b.read(ctx)
	return now.State == breaker.Open && now.Opens > 1, err
}

// banner prints the breaker as the console shows it on top of every page.
func (p *demoPrinter) banner(b ops.Breaker, complete int) {
	colour, about := yellow, ""
	switch b.State {
	case breaker.Open:
		colour, about = red, fmt.Sprintf("%d jobs held, none charged; next probe in %.0f s", b.Behind, max(0, time.Until(b.NextProbe).Seconds()))
	case breaker.HalfOpen:
		about = fmt.Sprintf("one job at a time may run, %d held", b.Behind)
	case breaker.Recovering:
		about = fmt.Sprintf("%d held", b.Behind)
		if b.Lets != nil && b.Lets.Rate != nil {
			about = fmt.Sprintf("%.1f jobs per second may run, %d held", b.Lets.Rate.PerSecond, b.Behind)
		}
	case breaker.Closed:
		colour, about = green, "all jobs run again"
	}
	why := ""
	if b.State == breaker.Open && b.Why != "" {
		why = p.paint(dim, " ("+b.Why+")")
	}
	p.say("%s  %s %s; %d of %d rendered%s", p.paint(dim, p.clock(time.Now())), p.paint(colour, fmt.Sprintf("breaker %s %-10s", b.Dependency, strings.ToUpper(string(b.State)))), about, complete, pages, why)
}

// redrive redrives the refused pages: two first, then the rest.
func (d *demo) redrive(ctx context.Context) error {
	d.out.title("A redrive: the refused pages, after the font is installed")
	request := redrive.Order{
		Filter: holdfast.Filter{Kind: renderArgs{}.Kind()}, Canary: 2, PerSecond: 4, StopAbove: 0.2, Actor: "you", Reason: "the font is installed",
	}
	preview, err := d.ops.PreviewRedrive(ctx, request)
	if err != nil {
		return err
	}
	d.out.say("dry run         %d eligible, %d not; two first, then four per second, stop when more than 20%% fail again", preview.Eligible, preview.Looked-preview.Eligible)
	d.gateway.installFont()
	id, err := d.ops.StartRedrive(ctx, request)
	if err != nil {
		return err
	}
	last := ""
	return d.waitUntil(ctx, "the redrive ends", func() (bool, error) {
		r, err := d.ops.Redrive(ctx, id)
		if err != nil {
			return false, err
		}
		if now := fmt.Sprint(r.State, r.Tally); now != last {
			last = now
			d.out.progress(r)
		}
		return r.State.Ended() && r.Tally.InFlight == 0, nil
	})
}

// progress prints the progress of a redrive.
func (p *demoPrinter) progress(r ops.Redrive) {
	const width = 30
	done := r.Tally.Complete + r.Tally.Failed
	filled := min(width, width*done/max(r.Eligible, 1))
	p.say("%s  redrive %-8s [%s%s] %d of %d complete, %d failed again, %d in flight  %s", p.paint(dim, p.clock(time.Now())), r.State,
		p.paint(green, strings.Repeat("█", filled)), strings.Repeat("·", width-filled), r.Tally.Complete, r.Eligible, r.Tally.Failed, r.Tally.InFlight, p.paint(dim, r.Why))
}
