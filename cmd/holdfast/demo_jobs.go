package main

import (
	"context"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A demoJob is a job of the demo, and what was printed of its story so far.
type demoJob struct {
	name    string
	about   string
	args    holdfast.Args
	options []func(*holdfast.Draft)

	id      holdfast.ID
	state   holdfast.State
	worker  string
	printed map[string]bool
	seen    map[string]int // how many lines of each name were printed
	resumed time.Duration  // from the kill of its worker to its next attempt
}

func demoJobs() []*demoJob {
	document := func(name, about string) *demoJob {
		return &demoJob{name: name, about: about, args: convertArgs{Document: name}}
	}
	in := func(queue string) func(*holdfast.Draft) { return func(draft *holdfast.Draft) { draft.Queue = queue } }
	after := func(d time.Duration) func(*holdfast.Draft) { return func(draft *holdfast.Draft) { draft.Delay = d } }
	expire := func(d time.Duration) func(*holdfast.Draft) { return func(draft *holdfast.Draft) { draft.ExpireIn = d } }
	jobs := []*demoJob{
		document("letter.pdf", "an ordinary job"),
		document("invoice.pdf", "an ordinary job"),
		document("contract.pdf", "an ordinary job"),
		document("flaky.pdf", "the gateway answers 502, 502, then 200"),
		document("busy.pdf", "the gateway answers 429 with Retry-After: 4"),
		document("slow.pdf", "the gateway takes too long once"),
		document("not-a-pdf.txt", "the gateway refuses it: not retried"),
		document("cursed.pdf", "the gateway answers 503 until it is repaired"),
		{name: "report", about: "twenty pages; its worker will be killed with kill -9", args: reportArgs{Pages: 20}},
		{name: "mail", about: "its handler panics on the first attempt", args: mailArgs{To: "ada@example.org"}},
		{name: "newsletter", about: "its queue is paused", args: convertArgs{Document: "newsletter.pdf"}, options: []func(*holdfast.Draft){in("bulk")}},
		{name: "archive", about: "takes long; it is cancelled", args: reportArgs{Pages: 60}},
		{name: "reminder", about: "scheduled to start in six seconds", args: convertArgs{Document: "reminder.pdf"}, options: []func(*holdfast.Draft){after(6 * time.Second)}},
		{name: "offer", about: "expires if it has not started in four seconds", args: convertArgs{Document: "offer.pdf"}, options: []func(*holdfast.Draft){after(time.Minute), expire(4 * time.Second)}},
	}
	for _, job := range jobs {
		job.printed, job.seen, job.state = map[string]bool{}, map[string]int{}, holdfast.Queued
	}
	return jobs
}

// A demoAction is something that the demo does once, as soon as it is ready.
type demoAction struct {
	ready func() bool
	do    func(ctx context.Context) error
}

func (d *demo) actions() []*demoAction {
	report, cursed, busy, slow := d.job("report"), d.job("cursed.pdf"), d.job("busy.pdf"), d.job("slow.pdf")
	newsletter, archive := d.job("newsletter"), d.job("archive")
	began := time.Now()
	past := func(d time.Duration) bool { return time.Since(began) > d }
	return []*demoAction{
		{func() bool { return busy.seen["retry"] > 0 && past(time.Second) }, func(ctx context.Context) error { return d.explain(ctx, busy) }},
		{func() bool {
			return report.state == holdfast.Processing && slow.seen["retry"] > 0 && past(4500*time.Millisecond)
		}, func(context.Context) error { return d.kill(report) }},
		{func() bool { return past(11 * time.Second) }, func(ctx context.Context) error { return d.explain(ctx, newsletter) }},
		{func() bool { return past(13 * time.Second) }, d.resume},
		{func() bool { return archive.state == holdfast.Processing && past(15*time.Second) }, func(ctx context.Context) error { return d.cancel(ctx, archive) }},
		{func() bool { return cursed.state == holdfast.Failed && report.state.Terminal() && past(18*time.Second) }, func(ctx context.Context) error { return d.retry(ctx, cursed) }},
	}
}

func (d *demo) job(name string) *demoJob {
	for _, job := range d.jobs {
		if job.name == name {
			return job
		}
	}
	return nil
}

// kill ends the worker that runs a job without warning, as an out-of-memory killer does.
func (d *demo) kill(job *demoJob) error {
	name, _, _ := strings.Cut(job.worker, "/")
	worker := d.workers[name]
	d.out.action("kill -9 worker %s, which is running %s", name, job.name)
	d.killed = time.Now()
	if err := worker.Process.Kill(); err != nil {
		return err
	}
	_ = worker.Wait()
	delete(d.workers, name)
	return nil
}

// retry repairs the gateway and retries the dead letter.
func (d *demo) retry(ctx context.Context, job *demoJob) error {
	d.gateway.heal()
	d.out.action("the gateway is repaired; %s is retried manually", job.name)
	_, err := d.ops.Retry(ctx, holdfast.Intervention{Job: job.id, Actor: "you", Reason: "the gateway is repaired"})
	return err
}

// explain prints why a job is not running.
func (d *demo) explain(ctx context.Context, job *demoJob) error {
	explanation, err := d.ops.Explain(ctx, job.id)
	if err != nil {
		return err
	}
	d.out.action("why is %s not running?", job.name)
	for _, reason := range explanation.Reasons {
		d.out.detail("%s", reason.Text)
		if reason.Remedy != "" {
			d.out.detail("  %s", reason.Remedy)
		}
	}
	return nil
}

// pause pauses a queue before a job is in it.
func (d *demo) pause(ctx context.Context) error {
	return d.ops.Pause(ctx, holdfast.Hold{Queue: "bulk", Actor: "you", Reason: "not during office hours"})
}

func (d *demo) resume(ctx context.Context) error {
	d.out.action("queue bulk is resumed")
	return d.ops.Resume(ctx, holdfast.Hold{Queue: "bulk", Actor: "you"})
}

// cancel requests the cancellation of a processing job.
func (d *demo) cancel(ctx context.Context, job *demoJob) error {
	d.out.action("%s is cancelled while it is processing", job.name)
	_, err := d.ops.Cancel(ctx, holdfast.Intervention{Job: job.id, Actor: "you", Reason: "no longer needed"})
	return err
}
