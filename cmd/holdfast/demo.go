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

// demoLimit bounds the duration of the demo, which usually takes about a minute.
const demoLimit = 3 * time.Minute

func demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo: jobs fail and recover (about a minute, no setup)",
		Long: `Runs jobs on a temporary SQLite store. They call a small HTTP server on loopback that fails in scripted ways; one worker process is
killed with kill -9 while it works; one dead letter is retried manually. Then a dependency of sixty jobs goes down: its breaker holds
the jobs, probes, and lets them run again; jobs that were refused are redriven. At the end a group of fifty jobs is partial, a mail
and a signed webhook report it, and the failed members are retried. Every line is read back from the store: it is the jobs' story.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), demoLimit)
			defer cancel()
			return runDemo(ctx, newDemoPrinter(c.OutOrStdout()))
		},
	}
	c.AddCommand(demoWorkerCommand())
	return c
}

// A demo is one run: its store, the gateway that fails, the worker processes, and the jobs that it watches.
type demo struct {
	out     *demoPrinter
	dir     string
	address string
	store   holdfast.Store
	ops     *ops.Service
	gateway *gateway
	workers map[string]*exec.Cmd
	jobs    []*demoJob
	killed  time.Time // when a worker was killed
}

func runDemo(ctx context.Context, p *demoPrinter) (err error) {
	d := &demo{out: p, workers: map[string]*exec.Cmd{}}
	defer d.close()
	if err := d.open(ctx); err != nil {
		return err
	}
	p.title("Holdfast: what happens when jobs fail")
	p.say("store    SQLite, a temporary file")
	p.say("gateway  %s, fails in scripted ways", d.gateway.url)
	for _, name := range []string{"ada", "grace"} {
		if err := d.start(ctx, name); err != nil {
			return err
		}
	}
	p.say("workers  ada and grace, separate processes, leases of %v", demoLease)
	if err := d.enqueue(ctx); err != nil {
		return err
	}
	if err := d.watchJobs(ctx); err != nil {
		return err
	}
	if err := d.outage(ctx); err != nil {
		return err
	}
	if err := d.campaign(ctx); err != nil {
		return err
	}
	d.stopWorkers()
	return d.summarize(ctx)
}

func (d *demo) open(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "holdfast-demo-"); err != nil {
		return fmt.Errorf("cannot create a temporary folder for the demo: %w", err)
	}
	d.address = filepath.Join(d.dir, "jobs.db")
	if d.store, err = store.Open(ctx, d.address); err != nil {
		return err
	}
	d.ops = ops.New(d.store, ops.Config{})
	d.gateway, err = startGateway()
	return err
}

// start runs a worker process: this program, with the command 'demo worker'.
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
	// Not bound to ctx: an interrupted demo stops its workers gracefully.
	worker := exec.CommandContext(context.WithoutCancel(ctx), self, "demo", "worker", "--store", d.address, "--name", name, "--gateway", d.gateway.url)
	worker.Stdout, worker.Stderr = log, log
	if err := worker.Start(); err != nil {
		return fmt.Errorf("worker %s did not start: %w", name, err)
	}
	d.workers[name] = worker
	return nil
}

// enqueue enqueues the jobs of the demo.
func (d *demo) enqueue(ctx context.Context) error {
	d.out.title("The jobs")
	if err := d.pause(ctx); err != nil {
		return err
	}
	for _, job := range demoJobs() {
		receipt, err := holdfast.Enqueue(ctx, d.store, job.args, job.options...)
		if err != nil {
			return err
		}
		job.id = receipt.ID
		d.jobs = append(d.jobs, job)
		d.out.introduce(job)
	}
	d.out.title("Their story, as it happens")
	return nil
}

// watchJobs prints the story of every job and performs the scripted actions, until every job has ended and every action is done.
func (d *demo) watchJobs(ctx context.Context) error {
	actions := d.actions()
	for {
		open := 0 // jobs that have not ended, and actions that are not done
		for _, job := range d.jobs {
			if err := d.watch(ctx, job); err != nil {
				return err
			}
			if !job.state.Terminal() {
				open++
			}
		}
		for n, action := range actions {
			if action != nil && action.ready() {
				actions[n] = nil
				if err := action.do(ctx); err != nil {
					return err
				}
			}
			if action != nil {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the demo was stopped before it ended"), ctx.Err())
		}
	}
}

// watch prints what is new in a job's story.
func (d *demo) watch(ctx context.Context, job *demoJob) error {
	history, err := d.store.History(ctx, job.id)
	if err != nil {
		return err
	}
	job.state, job.worker = history.Job.State, history.Job.Worker
	for _, line := range ops.Tell(history) {
		if key := lineKey(line); !job.printed[key] {
			job.printed[key] = true
			job.seen[line.Name]++
			d.out.line(job, line)
			d.note(job, line)
		}
	}
	return nil
}

// lineKey identifies a line of a story. It does not contain the token: a reclaim records a lost attempt under the token of the reclaim.
func lineKey(line ops.Line) string {
	return fmt.Sprint(line.Name, line.Generation, line.Attempt)
}

// note records the time that the summary needs: from the kill of a worker to the next attempt of its job.
func (d *demo) note(job *demoJob, line ops.Line) {
	if job.name == "report" && line.Name == "processing" && !d.killed.IsZero() && job.resumed == 0 {
		job.resumed = line.At.Sub(d.killed)
	}
}

// summarize prints how the jobs ended and runs the integrity check.
func (d *demo) summarize(ctx context.Context) error {
	report, err := d.ops.Doctor(ctx)
	if err != nil {
		return err
	}
	d.out.title("Results")
	d.out.summary(d.jobs, report)
	if !report.Healthy {
		for _, finding := range report.Findings {
			d.out.say("doctor: %s: %s (%s)", finding.Job, finding.Rule, finding.Detail)
		}
		return errFindings
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
