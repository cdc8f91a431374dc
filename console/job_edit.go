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
)

// mountEdit mounts the form in which a job is edited. Its first step shows what would change and changes nothing.
func (c *Console) mountEdit() {
	const pattern = "/jobs/{id}/edit"
	c.see("/jobs/{id}/{verb}", func(q *ask) (page, error) { // written so that it gives way to /jobs/bulk/{id}
		if q.PathValue("verb") != "edit" {
			return page{}, errNowhere
		}
		if !q.may(apikey.Operator) {
			return page{}, &forbidden{text: "You may look, and not edit: it needs the scope " + string(apikey.Operator) + "."}
		}
		job, err := q.editable()
		if err != nil {
			return page{}, err
		}
		form := editForm{Job: job, Was: editWishOf(job), Wish: editWishOf(job), Seen: job.Digest()}
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
	c.acts = append(c.acts, pattern)
	c.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		q, err := c.enter(w, r, apikey.Operator)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		shown, was, err := q.edit()
		switch {
		case err != nil:
			c.refuse(w, r, err)
		case was != nil:
			c.goOn(w, q, *was)
		default:
			c.show(w, q, shown)
		}
	})
}

// An editForm is the form, and under it what it would change.
type editForm struct {
	Job     holdfast.Job
	Was     editWish // the job as it is
	Wish    editWish // as somebody wants it
	Seen    string
	Restore string          // the time of the change that is taken back; empty: none is
	Former  json.RawMessage // the arguments that it replaced
	Problem string
	Diff    []diffLine
	Facts   []editChange
	Ready   bool // it was looked at, and can be done
}

// An editWish is what somebody wrote into the form.
type editWish struct {
	Args, Queue, Priority, Tags, MaxAttempts, Reason string
	Now                                              bool // start at once
}

// An editChange is a fact that becomes another.
type editChange struct{ Name, Was, Is string }

func editWishOf(job holdfast.Job) editWish {
	w := editWish{Args: pretty(job.Args), Queue: job.Queue, Priority: strconv.Itoa(int(job.Priority)), Tags: strings.Join(job.Tags, " "), Now: true}
	if job.MaxAttempts > 0 {
		w.MaxAttempts = strconv.Itoa(job.MaxAttempts)
	}
	return w
}

// restoreInto writes into the form what the edit or redrive at a time replaced, for the person to look at first.
func (q *ask) restoreInto(form *editForm, at string) error {
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "there is no such edit: take the link from the job's story"}
	}
	history, err := q.desk.History(q.ctx, form.Job.ID)
	if err != nil {
		return err
	}
	former, err := ops.Former(history, when)
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
	form.Wish = editWishOf(was)
	form.Wish.Now, form.Wish.Reason = false, former.Reason
	return nil
}

func editPage(form editForm) page {
	return page{name: "job_edit", title: "Edit " + form.Job.Kind + " " + short(form.Job.ID), here: "jobs", data: form}
}

// editable finds the job. One that cannot be edited as it stands is refused in words.
func (q *ask) editable() (job holdfast.Job, err error) {
	id, err := q.id()
	if err != nil {
		return job, err
	}
	if job, err = q.desk.Job(q.ctx, id); err != nil {
		return job, err
	}
	if !canDo(job).Edit {
		return job, &holdfast.Error{Kind: holdfast.ErrConflict, Job: id, Message: "job " + id.String() + " is " + string(job.State) + ": only a queued job and a dead letter can be edited. Go back to the job to see what can be done"}
	}
	return job, nil
}

// edit reads the form and shows what it would change, or does it. What was written is never lost: it stands in the form again.
func (q *ask) edit() (page, *done, error) {
	job, err := q.editable()
	if err != nil {
		return page{}, nil, err
	}
	form := editForm{Job: job, Was: editWishOf(job), Seen: q.text("seen"), Wish: editWish{
		Args: strings.ReplaceAll(q.FormValue("args"), "\r\n", "\n"), Queue: q.text("queue"), Priority: q.text("priority"), Tags: strings.Join(strings.Fields(q.text("tags")), " "),
		MaxAttempts: q.text("max_attempts"), Reason: q.text("reason"), Now: q.text("now") != "",
	}}
	if at := q.text("restore"); at != "" {
		wish := form.Wish
		if err := q.restoreInto(&form, at); err != nil {
			return page{}, nil, err
		}
		form.Wish = wish
	}
	e, err := form.read(q)
	switch {
	case err == nil && form.Seen != job.Digest():
		err = &holdfast.Error{Kind: holdfast.ErrConflict, Message: "the job has changed since you opened this form: look at the difference again, then edit what is there now"}
		form.Seen = job.Digest()
	case err == nil && q.text("step") == "do":
		was, failed := q.carryOut(job, e)
		if failed == nil {
			return page{}, &was, nil
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

// read makes an edit of what was written, and says what it changes.
func (f *editForm) read(q *ask) (e holdfast.Edit, err error) {
	e = holdfast.Edit{Intervention: q.on(f.Job.ID), Seen: f.Seen}
	is, err := readJSON(f.Wish.Args)
	if err != nil {
		return e, err
	}
	if len(f.Former) > 0 && bytes.Equal(compacted(is), compacted(f.Former)) { // they come back to the letter, also what no patch can write
		e.Args = f.Former
		f.Diff = difference(pretty(f.Job.Args), pretty(f.Former))
	} else {
		made, err := blended(f.Job.Args, is, "args")
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
		{"Queue", f.Was.Queue, f.Wish.Queue}, {"Priority", f.Was.Priority, f.Wish.Priority}, {"Tags", f.Was.Tags, f.Wish.Tags}, {"Attempts at most", f.Was.MaxAttempts, f.Wish.MaxAttempts},
	} {
		if fact.Was != fact.Is {
			f.Facts = append(f.Facts, fact)
		}
	}
	if len(f.Diff)+len(f.Facts) == 0 && !f.Wish.Now {
		return e, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "nothing is different: change something, or leave the job as it is"}
	}
	return e, nil
}

// readFacts takes over what is different.
func (f *editForm) readFacts(e *holdfast.Edit) error {
	if f.Wish.Queue != f.Was.Queue {
		e.Queue = &f.Wish.Queue
	}
	if f.Wish.Priority != f.Was.Priority {
		n, err := strconv.ParseInt(f.Wish.Priority, 10, 16)
		if err != nil {
			return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "priority: give a whole number from -32768 to 32767; a lower one is claimed first"}
		}
		small := int16(n)
		e.Priority = &small
	}
	if tags := strings.Fields(f.Wish.Tags); !slices.Equal(tags, f.Job.Tags) && f.Wish.Tags != f.Was.Tags {
		e.Tags = &tags
	}
	if f.Wish.MaxAttempts != f.Was.MaxAttempts {
		n := 0
		if f.Wish.MaxAttempts != "" {
			var err error
			if n, err = strconv.Atoi(f.Wish.MaxAttempts); err != nil || n < 0 {
				return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "attempts: give a whole number, or nothing to leave it to the policy"}
			}
		}
		e.MaxAttempts = &n
	}
	return nil
}

// changesMore reports whether an edit changes more than the time.
func changesMore(e holdfast.Edit) bool {
	return e.Patch != nil || e.Args != nil || e.Queue != nil || e.Priority != nil || e.Tags != nil || e.MaxAttempts != nil
}

// carryOut edits the job and sends it round again. A dead letter is edited first, so that no attempt ever meets the old arguments.
func (q *ask) carryOut(job holdfast.Job, e holdfast.Edit) (done, error) {
	to := "/jobs/" + job.ID.String()
	if job.State == holdfast.Queued {
		if q.text("now") != "" {
			e.Delay = new(time.Duration)
		}
		_, err := q.desk.Edit(q.ctx, e)
		return done{to: to, text: "Edited. " + map[bool]string{true: "It starts as soon as a worker is free.", false: "It waits as before."}[e.Delay != nil]}, err
	}
	if changesMore(e) {
		if _, err := q.desk.Edit(q.ctx, e); err != nil {
			return done{}, err
		}
	}
	if q.text("now") == "" {
		return done{to: to, text: "Edited. It is a dead letter still: retry it when it is time."}, nil
	}
	ahead, err := q.desk.Retry(q.ctx, e.Intervention)
	if errors.Is(err, holdfast.ErrConflict) {
		return done{to: to, bad: true, text: "Edited, and not retried: " + sentence(err)}, nil
	}
	return done{to: to, text: "Edited and retried: it is queued again, " + inFront(ahead) + "."}, err
}
