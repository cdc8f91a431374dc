package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// demoLimit is when the demo stops waiting for its own end. It usually takes half a minute.
const demoLimit = 3 * time.Minute

func demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show jobs failing, and what becomes of them (about a minute, no set-up)",
		Long: `Runs a handful of jobs on a throw-away SQLite store. They call a small HTTP server on loopback that fails in scripted
ways; one worker process is killed with kill -9 in the middle of its work; one dead letter is retried by hand. Then
something that sixty jobs call goes down: its breaker holds them back, probes, and lets them go; and what was refused is redriven. At
last a campaign of fifty jobs ends partly, a mail and a signed webhook say so, and it is made whole by hand. Every line shown is
read back from the store: it is the jobs' own story.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, enough := context.WithTimeout(c.Context(), demoLimit)
			defer enough()
			return runDemo(ctx, newStage(c.OutOrStdout()))
		},
	}
	c.AddCommand(demoWorkerCommand())
	return c
}

// A demo is one run: its store, the thing that breaks, the worker processes, and the jobs it watches.
type demo struct {
	stage   *stage
	dir     string
	address string
	store   holdfast.Store
	ops     *ops.Service
	gateway *gateway
	workers map[string]*exec.Cmd
	jobs    []*demoJob
	killed  time.Time
}

func runDemo(ctx context.Context, s *stage) (err error) {
	d := &demo{stage: s, workers: map[string]*exec.Cmd{}}
	defer d.close()
	if err := d.open(ctx); err != nil {
		return err
	}
	s.title("Holdfast: what happens when it fails")
	s.say("store    SQLite, a throw-away file")
	s.say("gateway  %s, fails in scripted ways", d.gateway.url)
	for _, name := range []string{"ada", "grace"} {
		if err := d.start(ctx, name); err != nil {
			return err
		}
	}
	s.say("workers  ada and grace, processes of their own, leases of %v", demoLease)
	if err := d.enqueue(ctx); err != nil {
		return err
	}
	if err := d.play(ctx); err != nil {
		return err
	}
	if err := d.outage(ctx); err != nil {
		return err
	}
	if err := d.campaign(ctx); err != nil {
		return err
	}
	d.stopWorkers()
	return d.conclude(ctx)
}

func (d *demo) open(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "holdfast-demo-"); err != nil {
		return fmt.Errorf("the demo needs a temporary folder: %w", err)
	}
	d.address = filepath.Join(d.dir, "jobs.db")
	if d.store, err = store.Open(ctx, d.address); err != nil {
		return err
	}
	d.ops = ops.New(d.store, ops.Config{})
	d.gateway, err = startGateway()
	return err
}

// start runs a worker process: this very program, under another verb.
func (d *demo) start(ctx context.Context, name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	// Not bound to ctx: an interrupted demo stops its workers in order.
	worker := exec.CommandContext(context.WithoutCancel(ctx), self, "demo", "worker", "--store", d.address, "--name", name, "--gateway", d.gateway.url)
	worker.Stdout, worker.Stderr = log, log
	if err := worker.Start(); err != nil {
		return fmt.Errorf("worker %s did not start: %w", name, err)
	}
	d.workers[name] = worker
	return nil
}

// enqueue hands the cast to the store.
func (d *demo) enqueue(ctx context.Context) error {
	d.stage.title("The jobs")
	if err := d.pause(ctx); err != nil {
		return err
	}
	for _, job := range demoCast() {
		receipt, err := holdfast.Enqueue(ctx, d.store, job.args, job.options...)
		if err != nil {
			return err
		}
		job.id = receipt.ID
		d.jobs = append(d.jobs, job)
		d.stage.cast(job)
	}
	d.stage.title("Their story, as it happens")
	return nil
}

// play watches until every job has ended, and acts when its cues come.
func (d *demo) play(ctx context.Context) error {
	cues := d.cues()
	for {
		open := 0 // jobs that have not ended, and cues that have not come
		for _, job := range d.jobs {
			if err := d.watch(ctx, job); err != nil {
				return err
			}
			if !job.state.Terminal() {
				open++
			}
		}
		for n, cue := range cues {
			if cue != nil && cue.ready() {
				cues[n] = nil
				if err := cue.act(ctx); err != nil {
					return err
				}
			}
			if cue != nil {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the demo was stopped before its end"), ctx.Err())
		}
	}
}

// watch tells what is new in a job's story.
func (d *demo) watch(ctx context.Context, job *demoJob) error {
	history, err := d.store.History(ctx, job.id)
	if err != nil {
		return err
	}
	job.state, job.worker = history.Job.State, history.Job.Worker
	for _, line := range ops.Tell(history) {
		if key := toldKey(line); !job.told[key] {
			job.told[key] = true
			job.heard[line.Name]++
			d.stage.line(job, line)
			d.note(job, line)
		}
	}
	return nil
}

// toldKey tells lines apart. Not by token: reclaim tells a lost attempt under the token it took it over with.
func toldKey(line ops.Line) string {
	return fmt.Sprint(line.Name, line.Generation, line.Attempt)
}

// note remembers what the summary wants to know.
func (d *demo) note(job *demoJob, line ops.Line) {
	if job.name == "report" && line.Name == "processing" && !d.killed.IsZero() && job.resumed == 0 {
		job.resumed = line.At.Sub(d.killed)
	}
}

// conclude sums up and puts every promise to the test.
func (d *demo) conclude(ctx context.Context) error {
	report, err := d.ops.Doctor(ctx)
	if err != nil {
		return err
	}
	d.stage.title("How it ended")
	d.stage.summary(d.jobs, report)
	if !report.Healthy {
		for _, finding := range report.Findings {
			d.stage.say("doctor: %s: %s (%s)", finding.Job, finding.Rule, finding.Detail)
		}
		return errFound
	}
	return nil
}

func (d *demo) stopWorkers() {
	for name, worker := range d.workers {
		_ = worker.Process.Signal(os.Interrupt)
		_ = worker.Wait()
		delete(d.workers, name)
	}
}

func (d *demo) close() {
	for _, worker := range d.workers {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	}
	if d.gateway != nil {
		d.gateway.close()
	}
	if d.store != nil {
		_ = d.store.Close()
	}
	_ = os.RemoveAll(d.dir)
}
