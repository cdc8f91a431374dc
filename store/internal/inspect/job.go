package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// errFull ends the reading of a page that is large enough.
var errFull = errors.New("the page is full")

// page reads the jobs whose ids the query picks, newest first. full is true if it stopped at largestBytes. beside is
// further common tables for the statement.
func (i *Inspector) page(ctx context.Context, pick query, beside string) (jobs []holdfast.Job, full bool, err error) {
	now, err := i.q.Now(ctx)
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	text := "WITH page AS (" + pick.text + ")" + beside + "\n" + i.statements["inspect_jobs"]
	err = i.q.Query(ctx, text, pick.args, func(r Row) error {
		job := readJob(r)
		job.AsOf = now.UTC()
		// A damaged store may have a job in two batches; it is still one job.
		if len(jobs) == 0 || jobs[len(jobs)-1].ID != job.ID {
			if bytes += sizeOf(&job); bytes > largestBytes && len(jobs) > 0 {
				return errFull
			}
			jobs = append(jobs, job)
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return jobs, true, nil
	}
	return jobs, false, err
}

// sizeOf returns about how many bytes the texts of a job have.
func sizeOf(job *holdfast.Job) int {
	size := len(job.Args) + len(job.Result)
	if f := job.LastFailure; f != nil {
		size += len(f.Message) + len(f.Detail)
	}
	for _, tag := range job.Tags {
		size += len(tag)
	}
	return size
}

// leaseOfOne returns a common table that replaces holdfast_leased when one job is read: SQLite would read every member
// of every batch to find it.
func (i *Inspector) leaseOfOne() string {
	if i.dialect != SQLite {
		return ""
	}
	return ", holdfast_leased AS (SELECT m.* FROM holdfast_batch h CROSS JOIN main.holdfast_leased m ON m.batch = h.id WHERE instr(h.jobs, $1) > 0 AND m.job = $1)"
}

// readJob reads one row of the statement inspect_jobs.
func readJob(r Row) holdfast.Job {
	job := holdfast.Job{
		ID: r.ID(0), Kind: r.Text(1), Queue: r.Text(2), Args: readable(r.Text(3)), Priority: int16(r.Int(4)), Owner: r.Text(5), Tags: r.Texts(6),
		MaxAttempts: r.Int(7), UniqueKey: r.Text(8), IdempotencyKey: r.Text(9), CreatedAt: r.Time(10), RunAt: r.Time(37), ExpireAt: r.Time(11),

		State: holdfast.State(r.Text(12)), DueAt: r.Time(13), Token: r.Int(14), Failures: r.Int(15), Crashes: r.Int(16), Releases: r.Int(17), Generation: r.Int(18),

		Dependency: r.Text(38), RetryWithin: time.Duration(r.Int(39)) * time.Microsecond,

		Worker: r.Text(19), LeaseUntil: r.Time(20), StartedAt: r.Time(21), FinishedAt: r.Time(22), Discarded: !r.Null(24),

		Group: r.ID(40), Upstream: r.ID(41), Waiting: r.Bool(42), Trace: r.Text(43), Step: r.Text(44), Skipped: r.Bool(45), Order: r.Text(46), OrderHold: r.Bool(47),
	}
	if job.State == holdfast.Complete && !r.Null(23) {
		job.Result = readable(r.Text(23))
	}
	job.Cancelling = job.State == holdfast.Processing && !r.Null(25)
	if !r.Null(26) {
		job.Progress = &holdfast.Progress{Percent: r.Float(26), Note: r.Text(27), At: r.Time(28)}
	}
	if job.State != holdfast.Complete {
		job.LastFailure = readFailure(r, 29)
	}
	return job
}

// readFailure reads the eight columns of a failure, beginning with column from. Without a code there is none.
func readFailure(r Row, from int) *holdfast.Failure {
	if r.Text(from) == "" {
		return nil
	}
	failure := &holdfast.Failure{
		Code: r.Text(from), Category: r.Text(from + 1), Message: r.Text(from + 2), Detail: r.Text(from + 3),
		Dependency: r.Text(from + 5), Fingerprint: r.Text(from + 6), Benign: r.Bool(from + 7),
	}
	if context := r.Text(from + 4); context != "" {
		// A context that cannot be read is left out: it must not cause another failure.
		_ = json.Unmarshal([]byte(context), &failure.Context)
	}
	return failure
}

// readable returns stored JSON. A text that is not JSON, or is larger than a store accepts, is damaged: its beginning
// is returned as a JSON string, so that the job can still be encoded as JSON.
func readable(text string) json.RawMessage {
	if len(text) <= check.MaxArgs && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	const enough = 1000
	if len(text) > enough {
		text = text[:enough] + "..."
	}
	quoted, _ := json.Marshal(strings.ToValidUTF8(text, "?")) // a string always marshals
	return quoted
}
