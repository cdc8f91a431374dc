package console

import (
	"context"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// startRedrive does what the wizard was told. The same form sent twice does it once.
func startRedrive(q *ask) (done, error) {
	v := wizard{wish: wishOf(q)}
	again := v.values()
	again.Set("step", "confirm")
	wrong := done{to: "/redrives/new?" + again.Encode()}
	if !v.Selects() {
		return done{to: "/redrives/new"}, unfit("nothing was done: say which dead letters you mean")
	}
	q.c.ordering.Lock()
	defer q.c.ordering.Unlock()
	ticket, err := holdfast.ParseID(q.text("ticket"))
	if err != nil {
		return wrong, unfit("nothing was done: the form was not complete. Send it from this page")
	}
	if id, known, err := startedWith(q, ticket); err != nil || known {
		return done{text: "This redrive was started already: here it is.", to: "/redrives/" + id.String()}, err
	}
	o, err := v.look(q)
	if err != nil {
		return wrong, err
	}
	if err := v.confirmed(q, o.Going); err != nil {
		return wrong, err
	}
	if len(v.Jobs) > 0 {
		return sendJobs(q, o.jobs, v.Discard), nil
	}
	order := v.order(q)
	order.Request = ticket.String() // by which it is found again when the form is sent twice
	id, err := q.desk.StartRedrive(q.ctx, order)
	if err != nil {
		return wrong, err
	}
	return done{text: fmt.Sprintf("The redrive was started: %s, by the workers, at its pace.", going(o, v.Discard)), to: "/redrives/" + id.String()}, nil
}

func going(o outlook, discard bool) string {
	verb := "will go round again"
	if discard {
		verb = "will be discarded"
	}
	return plural(o.Going, "dead letter") + " " + verb
}

// startedWith finds the redrive that was started with a form. Records that cannot be read do not matter here.
func startedWith(q *ask, ticket holdfast.ID) (holdfast.ID, bool, error) {
	list, err := q.desk.Redrives(q.ctx)
	for _, one := range list {
		if one.Order.Request == ticket.String() {
			return one.ID, true, nil
		}
	}
	if len(list) > 0 {
		err = nil
	}
	return holdfast.ID{}, false, err
}

// sendJobs retries or discards jobs one by one. Those with which it did not work stay selected.
func sendJobs(q *ask, jobs []holdfast.ID, discard bool) done {
	was, sent, last := done{to: "/dead-letters"}, 0, error(nil)
	for _, id := range jobs {
		var err error
		if discard {
			err = q.desk.Discard(q.ctx, q.on(id))
		} else {
			_, err = q.desk.Retry(q.ctx, q.on(id))
		}
		if err != nil {
			was.kept, last = append(was.kept, id), err
			continue
		}
		sent++
	}
	verb, state := "sent round again", " They are queued now."
	if discard {
		verb, state = "discarded", ""
	}
	was.text = plural(sent, "dead letter") + " " + verb + "." + state
	if last != nil {
		was.bad = true
		was.text += fmt.Sprintf(" With %s it did not work: %s", plural(len(was.kept), "other"), sentence(last))
	}
	if len(jobs) == 1 {
		was.to = "/jobs/" + jobs[0].String()
	}
	return was
}

// moveRedrive is a person's word on a redrive.
func moveRedrive(text string, do func(d ops.Desk, ctx context.Context, id holdfast.ID, by ops.By) error) deed {
	return func(q *ask) (done, error) {
		id, err := q.id()
		if err != nil {
			return done{to: "/redrives"}, err
		}
		to := "/redrives/" + id.String()
		return done{text: "The redrive " + text, to: to}, do(q.desk, q.ctx, id, q.by())
	}
}
