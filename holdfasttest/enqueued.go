package holdfasttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A lister lists jobs: a store, or a store inside a transaction (Store.In).
type lister interface {
	Jobs(ctx context.Context, f store.Filter) (jobs []holdfast.Job, cursor string, err error)
}

// maxListed is how many jobs of a kind a test may have before it is refused: the helpers compare each of them.
const maxListed = 10_000

// RequireEnqueued ends the test unless exactly one job with these arguments was enqueued, in any state, and returns it. It takes what Enqueue takes: from is a
// store or store.In(tx), and each field that the options set in the draft must be as it would be after Enqueue. Fields that they leave alone may have any
// value.
//
// The message of a failed test shows how the most similar job differs.
func RequireEnqueued(t testing.TB, from holdfast.Enqueuer, args holdfast.Args, options ...func(*holdfast.Draft)) holdfast.Job {
	t.Helper()
	want := newWanted(t, args, options)
	jobs := list(t, from, args.Kind())
	var found []holdfast.Job
	for _, job := range jobs {
		if len(want.differences(job)) == 0 {
			found = append(found, job)
		}
	}
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		t.Fatal("holdfasttest: " + want.missing(jobs))
	default:
		t.Fatalf("holdfasttest: %d jobs match, want 1: a %s was enqueued more than once\n%s", len(found), want, describeAll(found))
	}
	return holdfast.Job{}
}

// RequireNotEnqueued ends the test if a job with these arguments was enqueued. Options narrow it, as in RequireEnqueued.
func RequireNotEnqueued(t testing.TB, from holdfast.Enqueuer, args holdfast.Args, options ...func(*holdfast.Draft)) {
	t.Helper()
	want := newWanted(t, args, options)
	for _, job := range list(t, from, args.Kind()) {
		if len(want.differences(job)) == 0 {
			t.Fatalf("holdfasttest: a %s was enqueued, want none\n%s", want, describe(job))
		}
	}
}

// An Enqueued is a job with its arguments decoded.
type Enqueued[A holdfast.Args] struct {
	holdfast.Job
	Args A
}

// AllEnqueued returns all jobs of the kind that A names, the oldest first.
func AllEnqueued[A holdfast.Args](t testing.TB, from holdfast.Enqueuer) []Enqueued[A] {
	t.Helper()
	var args A
	jobs := list(t, from, args.Kind())
	all := make([]Enqueued[A], len(jobs))
	for i, job := range jobs {
		all[i].Job = job
		if err := json.Unmarshal(job.Args, &all[i].Args); err != nil {
			t.Fatalf("holdfasttest: the arguments of job %s cannot be decoded into %T: %v\n%s", job.ID, all[i].Args, err, describe(job))
		}
	}
	return all
}

// list returns all jobs of a kind, the oldest first.
func list(t testing.TB, from holdfast.Enqueuer, kind string) []holdfast.Job {
	t.Helper()
	jobs, ok := from.(lister)
	if !ok {
		t.Fatalf("holdfasttest: %T cannot list jobs: give a store or store.In(tx)", from)
	}
	var all []holdfast.Job
	filter := store.Filter{Kind: kind, Limit: 200}
	for {
		page, cursor, err := jobs.Jobs(context.Background(), filter)
		if err != nil {
			t.Fatalf("holdfasttest: %v", err)
		}
		all = append(all, page...)
		if cursor == "" {
			slices.Reverse(all)
			return all
		}
		if len(all) >= maxListed {
			t.Fatalf("holdfasttest: there are more than %d jobs of kind %s: give each test a store of its own", maxListed, kind)
		}
		filter.Cursor = cursor
	}
}

// wanted is the job that a test asks for.
type wanted struct {
	draft holdfast.Draft
}

func newWanted(t testing.TB, args holdfast.Args, options []func(*holdfast.Draft)) wanted {
	t.Helper()
	draft, err := holdfast.NewDraft(args)
	if err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	for _, option := range options {
		option(&draft)
	}
	return wanted{draft}
}

// String describes it, as the object of a sentence.
func (w wanted) String() string {
	return fmt.Sprintf("%s %s", w.draft.Kind, clip(string(w.draft.Args)))
}

// timeTolerance is by how much a time may differ that the store derived from a duration.
const timeTolerance = time.Second

// differences says in which fields a job is not what is wanted. Only fields that the draft sets count.
func (w wanted) differences(job holdfast.Job) (all []string) {
	differ := func(bad bool, field string, want, got any) {
		if bad {
			all = append(all, fmt.Sprintf("%s: want %v, got %v", field, want, got))
		}
	}
	d := w.draft
	all = diffJSON("args", d.Args, job.Args)
	differ(!d.ID.IsZero() && d.ID != job.ID, "id", d.ID, job.ID)
	differ(d.Queue != "" && d.Queue != job.Queue, "queue", d.Queue, job.Queue)
	differ(d.Priority != 0 && d.Priority != job.Priority, "priority", d.Priority, job.Priority)
	differ(d.Owner != "" && d.Owner != job.Owner, "owner", d.Owner, quote(job.Owner))
	differ(d.Tags != nil && !slices.Equal(d.Tags, job.Tags), "tags", d.Tags, job.Tags)
	differ(!d.Group.IsZero() && d.Group != job.Group, "group", d.Group, job.Group)
	differ(d.Dependency != "" && d.Dependency != job.Dependency, "dependency", d.Dependency, quote(job.Dependency))
	differ(d.RetryWithin != 0 && d.RetryWithin != job.RetryWithin, "retry within", d.RetryWithin, job.RetryWithin)
	differ(d.MaxAttempts != 0 && d.MaxAttempts != job.MaxAttempts, "max attempts", d.MaxAttempts, job.MaxAttempts)
	differ(d.UniqueKey != "" && d.UniqueKey != job.UniqueKey, "unique key", d.UniqueKey, quote(job.UniqueKey))
	differ(d.IdempotencyKey != "" && d.IdempotencyKey != job.IdempotencyKey, "idempotency key", d.IdempotencyKey, quote(job.IdempotencyKey))
	all = append(all, differentTime("starts", d.RunAt, d.Delay, job.RunAt, job.CreatedAt)...)
	return append(all, differentTime("expires", d.ExpireAt, d.ExpireIn, job.ExpireAt, job.CreatedAt)...)
}

// differentTime compares a point in time of a job with the one in the draft, given as a point in time or as a duration after its creation.
func differentTime(field string, at time.Time, after time.Duration, got, created time.Time) []string {
	switch {
	case at.IsZero() && after == 0:
		return nil
	case at.IsZero():
		at = created.Add(after)
	}
	switch {
	case got.IsZero():
		return []string{fmt.Sprintf("%s: want %s after it was enqueued, got no such time", field, at.Sub(created).Round(time.Millisecond))}
	case got.Sub(at).Abs() > timeTolerance:
		return []string{fmt.Sprintf("%s: want %s, got %s", field, at.UTC().Format(time.RFC3339), got.UTC().Format(time.RFC3339))}
	}
	return nil
}

// missing is the message when no job matches: how the most similar one differs, and which others there are.
func (w wanted) missing(jobs []holdfast.Job) string {
	if len(jobs) == 0 {
		return fmt.Sprintf("no job of kind %s was enqueued, want %s", w.draft.Kind, w)
	}
	best, fewest := 0, w.differences(jobs[0])
	for i := range jobs[1:] {
		if all := w.differences(jobs[i+1]); len(all) < len(fewest) {
			best, fewest = i+1, all
		}
	}
	text := fmt.Sprintf("no job matches %s\n  the most similar of %d is %s:\n    %s", w, len(jobs), jobs[best].ID, strings.Join(fewest, "\n    "))
	if others := slices.Delete(slices.Clone(jobs), best, best+1); len(others) > 0 {
		text += "\n  others:\n" + describeAll(others)
	}
	return text
}

// describeAll describes up to ten jobs, one to a line.
func describeAll(jobs []holdfast.Job) string {
	const most = 10
	lines := make([]string, 0, most+1)
	for _, job := range jobs[:min(len(jobs), most)] {
		lines = append(lines, describe(job))
	}
	if len(jobs) > most {
		lines = append(lines, fmt.Sprintf("    and %d more", len(jobs)-most))
	}
	return strings.Join(lines, "\n")
}

func describe(job holdfast.Job) string {
	return fmt.Sprintf("    %s %s in queue %s, %s: %s", job.ID, job.Kind, job.Queue, job.State, clip(string(job.Args)))
}

// clip shortens a text for a message.
func clip(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

func quote(text string) string { return fmt.Sprintf("%q", text) }

// diffJSON says in which members two JSON values differ.
func diffJSON(path string, want, got json.RawMessage) []string {
	var a, b any
	if decodeNumbers(want, &a) != nil || decodeNumbers(got, &b) != nil {
		if bytes.Equal(want, got) {
			return nil
		}
		return []string{fmt.Sprintf("%s: want %s, got %s", path, clip(string(want)), clip(string(got)))}
	}
	return diffValues(path, a, b)
}

// decodeNumbers decodes JSON and keeps numbers as they are written, so that large ones are compared exactly.
func decodeNumbers(text json.RawMessage, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func diffValues(path string, want, got any) (all []string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, name := range sortedNames(w, g) {
			all = append(all, diffMembers(path+"."+name, w, g, name)...)
		}
		return all
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			all = append(all, diffValues(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])...)
		}
		return all
	}
	if a, b := asJSON(want), asJSON(got); a != b {
		return []string{fmt.Sprintf("%s: want %s, got %s", path, a, b)}
	}
	return nil
}

func diffMembers(path string, want, got map[string]any, name string) []string {
	w, wanted := want[name]
	g, found := got[name]
	switch {
	case !found:
		return []string{fmt.Sprintf("%s: want %s, got none", path, asJSON(w))}
	case !wanted:
		return []string{fmt.Sprintf("%s: want none, got %s", path, asJSON(g))}
	}
	return diffValues(path, w, g)
}

func sortedNames(maps ...map[string]any) []string {
	seen := map[string]bool{}
	for _, m := range maps {
		for name := range m {
			seen[name] = true
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return clip(string(text))
}
