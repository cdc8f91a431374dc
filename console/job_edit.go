package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mountEdit mounts the form that edits a job. Its first step shows the difference and changes nothing.
func (c *Console) mountEdit() {
	const pattern = "/jobs/{id}/edit"
	c.handlePage("/jobs/{id}/{verb}", func(q *request) (page, error) { // this pattern has a wildcard so that it does not conflict with /jobs/bulk/{id}
		if q.PathValue("verb") != "edit" {
			return page{}, errNoPage
		}
		if !q.may(apikey.Operator) {
			return page{}, &forbidden{text: "Editing needs the scope " + string(apikey.Operator) + "."}
		}
		job, err := q.editable()
		if err != nil {
			return page{}, err
		}
		form := editForm{Job: job, Was: editValuesOf(job), Values: editValuesOf(job), Seen: job.Digest()}
		if at := q.text("restore"); at != "" {
			if err := q.restoreInto(&form, at); err != nil {
				return page{}, err
			}
			if _, err := form.read(q); err != nil {
				form.Problem = sentence(err)
			} else {
				form.Ready = true
			}
		}
		return editPage(form), nil
	})
	c.actionPatterns = append(c.actionPatterns, pattern)
	c.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		q, err := c.authorize(w, r, apikey.Operator)
		if err != nil {
			c.renderError(w, r, err)
			return
		}
		shown, result, err := q.edit()
		switch {
		case err != nil:
			c.renderError(w, r, err)
		case result != nil:
			c.finishAction(w, q, *result)
		default:
			c.render(w, q, shown)
		}
	})
}

// An editForm is the form with the difference that it would make.
type editForm struct {
	Job     holdfast.Job
	Was     editValues // the current values of the job
	Values  editValues // the values in the form
	Seen    string
	Restore string          // the time of the change to restore; empty for a normal edit
	Former  json.RawMessage // the arguments that the change replaced
	Problem string
	Diff    []diffLine
	Facts   []editChange
	Ready   bool // the difference is shown and the edit can be applied
}

// editValues are the fields of the form.
type editValues struct {
	Args, Queue, Priority, Tags, MaxAttempts, Reason string
	Now                                              bool // start now, or retry now
}

// An editChange is a field that changes.
type editChange struct{ Name, Was, Is string }

func editValuesOf(job holdfast.Job) editValues {
	w := editValues{Args: pretty(job.Args), Queue: job.Queue, Priority: strconv.Itoa(int(job.Priority)), Tags: strings.Join(job.Tags, " "), Now: true}
	if job.MaxAttempts > 0 {
		w.MaxAttempts = strconv.Itoa(job.MaxAttempts)
	}
	return w
}

// restoreInto fills the form with the values that an edit or a redrive replaced. The visitor sees the difference before anything is changed.
func (q *request) restoreInto(form *editForm, at string) error {
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "there is no such edit: use the link in the story of the job"}
	}
	history, err := q.operator.History(q.ctx, form.Job.ID)
	if err != nil {
		return err
	}
	former, err := ops.PreviousValues(history, when)
	if err != nil {
		return err
	}
	was := form.Job
	if former.Args != nil {
		was.Args, form.Former = former.Args, former.Args
	}
	if former.Priority != nil {
		was.Priority = *former.Priority
	}
	if former.MaxAttempts != nil {
		was.MaxAttempts = *former.MaxAttempts
	}
	if former.Queue != nil {
		was.Queue = *former.Queue
	}
	if former.Tags != nil {
		was.Tags = *former.Tags
	}
	form.Restore = at
	form.Values = editValuesOf(was)
	form.Values.Now, form.Values.Reason = false, former.Reason
	return nil
}

func editPage(form editForm) page {
	return page{name: "job_edit", title: "Edit " + form.Job.Kind + " " + short(form.Job.ID), here: "jobs", data: form}
}

// editable returns the job of the request, or ErrConflict if it cannot be edited in its state.
func (q *request) editable() (job holdfast.Job, err error) {
	id, err := q.id()
	if err != nil {
		return job, err
	}
	if job, err = q.operator.Job(q.ctx, id); err != nil {
		return job, err
	}
	if !canDo(job).Edit {
		return job, &holdfast.Error{Err: holdfast.ErrConflict, Job: id, Message: "job " + id.String() + " is " + string(job.State) + ": only queued jobs and dead letters can be edited"}
	}
	return job, nil
}

// edit reads the form and shows the difference, or applies it in step "do". After an error the form has everything that the visitor wrote.
func (q *request) edit() (page, *actionResult, error) {
	job, err := q.editable()
	if err != nil {
		return page{}, nil, err
	}
	form := editForm{Job: job, Was: editValuesOf(job), Seen: q.text("seen"), Values: editValues{
		Args: strings.ReplaceAll(q.FormValue("args"), "\r\n", "\n"), Queue: q.text("queue"), Priority: q.text("priority"), Tags: strings.Join(strings.Fields(q.text("tags")), " "),
		MaxAttempts: q.text("max_attempts"), Reason: q.text("reason"), Now: q.text("now") != "",
	}}
	if at := q.text("restore"); at != "" {
		values := form.Values
		if err := q.restoreInto(&form, at); err != nil {
			return page{}, nil, err
		}
		form.Values = values
	}
	e, err := form.read(q)
	switch {
	case err == nil && form.Seen != job.Digest():
		err = &holdfast.Error{Err: holdfast.ErrConflict, Message: "the job has changed since you opened this form: check the difference and submit again"}
		form.Seen = job.Digest()
	case err == nil && q.text("step") == "do":
		result, failed := q.applyEdit(job, e)
		if failed == nil {
			return page{}, &result, nil
		}
		err = failed
	case err == nil:
		form.Ready = true
	}
	if err != nil {
		form.Problem = sentence(err)
	}
	return editPage(form), nil, nil
}

// read returns the edit of the form and sets the difference.
func (f *editForm) read(q *request) (e store.Edit, err error) {
	e = store.Edit{Intervention: q.on(f.Job.ID), IfDigest: f.Seen}
	is, err := readJSON(f.Values.Args)
	if err != nil {
		return e, err
	}
	if len(f.Former) > 0 && bytes.Equal(compacted(is), compacted(f.Former)) { // restore them byte for byte: a patch cannot set a member to null
		e.Args = f.Former
		f.Diff = difference(pretty(f.Job.Args), pretty(f.Former))
	} else {
		made, err := mergePatchOf(f.Job.Args, is, "args")
		if err != nil {
			return e, err
		}
		if e.Patch = made.patch; e.Patch != nil {
			f.Diff = difference(pretty(f.Job.Args), pretty(made.after))
		}
	}
	if err := f.readFacts(&e); err != nil {
		return e, err
	}
	for _, fact := range []editChange{
		{"Queue", f.Was.Queue, f.Values.Queue}, {"Priority", f.Was.Priority, f.Values.Priority}, {"Tags", f.Was.Tags, f.Values.Tags}, {"Max attempts", f.Was.MaxAttempts, f.Values.MaxAttempts},
	} {
		if fact.Was != fact.Is {
			f.Facts = append(f.Facts, fact)
		}
	}
	if len(f.Diff)+len(f.Facts) == 0 && !f.Values.Now {
		return e, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "nothing changed: edit a field, or leave the job as it is"}
	}
	return e, nil
}

// readFacts sets the fields of the edit that differ.
func (f *editForm) readFacts(e *store.Edit) error {
	if f.Values.Queue != f.Was.Queue {
		e.Queue = &f.Values.Queue
	}
	if f.Values.Priority != f.Was.Priority {
		n, err := strconv.ParseInt(f.Values.Priority, 10, 16)
		if err != nil {
			return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "priority: use a whole number from -32768 to 32767; lower numbers are claimed first"}
		}
		small := int16(n)
		e.Priority = &small
	}
	if tags := strings.Fields(f.Values.Tags); !slices.Equal(tags, f.Job.Tags) && f.Values.Tags != f.Was.Tags {
		e.Tags = &tags
	}
	if f.Values.MaxAttempts != f.Was.MaxAttempts {
		n := 0
		if f.Values.MaxAttempts != "" {
			var err error
			if n, err = strconv.Atoi(f.Values.MaxAttempts); err != nil || n < 0 {
				return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "max attempts: use a whole number, or leave it empty to follow the policy"}
			}
		}
		e.MaxAttempts = &n
	}
	return nil
}

// changesMore reports whether an edit changes more than the start time.
func changesMore(e store.Edit) bool {
	return e.Patch != nil || e.Args != nil || e.Queue != nil || e.Priority != nil || e.Tags != nil || e.MaxAttempts != nil
}

// applyEdit edits the job and, if asked to, starts or retries it. A dead letter is edited before it is retried, so that no attempt runs with the old arguments.
func (q *request) applyEdit(job holdfast.Job, e store.Edit) (actionResult, error) {
	to := "/jobs/" + job.ID.String()
	if job.State == holdfast.Queued {
		if q.text("now") != "" {
			e.Delay = new(time.Duration)
		}
		_, err := q.operator.Edit(q.ctx, e)
		return actionResult{to: to, text: "Edited. " + map[bool]string{true: "It starts as soon as a worker is free.", false: "It waits as before."}[e.Delay != nil]}, err
	}
	if changesMore(e) {
		if _, err := q.operator.Edit(q.ctx, e); err != nil {
			return actionResult{}, err
		}
	}
	if q.text("now") == "" {
		return actionResult{to: to, text: "Edited. It is still a dead letter: retry it when you are ready."}, nil
	}
	ahead, err := q.operator.Retry(q.ctx, e.Intervention)
	if errors.Is(err, holdfast.ErrConflict) {
		return actionResult{to: to, bad: true, text: "Edited, but not retried: " + sentence(err)}, nil
	}
	return actionResult{to: to, text: "Edited and retried. The job is queued, " + aheadWords(ahead) + "."}, err
}
