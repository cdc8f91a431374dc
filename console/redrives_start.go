package console

import (
	"context"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// startRedrive starts the redrive of the wizard. A form that is sent twice starts one redrive: the ticket of the form identifies it.
func startRedrive(q *request) (actionResult, error) {
	v := wizard{redriveForm: redriveFormOf(q)}
	again := v.values()
	again.Set("step", "confirm")
	wrong := actionResult{to: "/redrives/new?" + again.Encode()}
	if !v.Selects() {
		return actionResult{to: "/redrives/new"}, invalid("nothing was changed: select dead letters")
	}
	q.c.startMu.Lock()
	defer q.c.startMu.Unlock()
	ticket, err := holdfast.ParseID(q.text("ticket"))
	if err != nil {
		return wrong, invalid("nothing was changed: the form was incomplete. Submit it from this page")
	}
	if id, known, err := startedWith(q, ticket); err != nil || known {
		return actionResult{text: "This redrive was already started.", to: "/redrives/" + id.String()}, err
	}
	o, err := v.preview(q)
	if err != nil {
		return wrong, err
	}
	if err := v.confirmed(q, o.Going); err != nil {
		return wrong, err
	}
	if len(v.Jobs) > 0 {
		return retryOrDiscard(q, o.jobs, v.Discard), nil
	}
	order := v.order(q)
	order.Request = ticket.String() // startedWith finds the redrive by it
	id, err := q.operator.StartRedrive(q.ctx, order)
	if err != nil {
		return wrong, err
	}
	return actionResult{text: fmt.Sprintf("Redrive started: %s.", startedWords(o, v.Discard)), to: "/redrives/" + id.String()}, nil
}

func startedWords(o redrivePreview, discard bool) string {
	verb := "will be queued again"
	if discard {
		verb = "will be discarded"
	}
	return plural(o.Going, "dead letter") + " " + verb
}

// startedWith returns the redrive that was started with a ticket. It ignores records that cannot be read.
func startedWith(q *request, ticket holdfast.ID) (holdfast.ID, bool, error) {
	list, err := q.operator.Redrives(q.ctx)
	for _, one := range list {
		if one.Spec.Request == ticket.String() {
			return one.ID, true, nil
		}
	}
	if len(list) > 0 {
		err = nil
	}
	return holdfast.ID{}, false, err
}

// retryOrDiscard retries or discards jobs one by one. Jobs that failed stay selected.
func retryOrDiscard(q *request, jobs []holdfast.ID, discard bool) actionResult {
	result, sent, last := actionResult{to: "/dead-letters"}, 0, error(nil)
	for _, id := range jobs {
		var err error
		if discard {
			err = q.operator.Discard(q.ctx, q.on(id))
		} else {
			_, err = q.operator.Retry(q.ctx, q.on(id))
		}
		if err != nil {
			result.kept, last = append(result.kept, id), err
			continue
		}
		sent++
	}
	verb := "queued again"
	if discard {
		verb = "discarded"
	}
	result.text = plural(sent, "dead letter") + " " + verb + "."
	if last != nil {
		result.bad = true
		result.text += fmt.Sprintf(" %s failed: %s", plural(len(result.kept), "other"), sentence(last))
	}
	if len(jobs) == 1 {
		result.to = "/jobs/" + jobs[0].String()
	}
	return result
}

// redriveAction returns an action on a redrive.
func redriveAction(text string, do func(d ops.Operator, ctx context.Context, id holdfast.ID, by ops.Actor) error) actionFunc {
	return func(q *request) (actionResult, error) {
		id, err := q.id()
		if err != nil {
			return actionResult{to: "/redrives"}, err
		}
		to := "/redrives/" + id.String()
		return actionResult{text: text, to: to}, do(q.operator, q.ctx, id, q.by())
	}
}
