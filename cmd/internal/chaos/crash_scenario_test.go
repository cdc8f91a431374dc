//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A scenario calls every operation of a store in a fixed order, and records each acknowledgement in a journal. Its leases expire immediately, so that the
// next call can reclaim the jobs.
type scenario struct {
	store   store.Store
	journal *journal
	bulk    int
	left    atomic.Int64 // number of boundaries until the exit
	broken  error
}

const instantly = time.Microsecond

// scenarioMain is the main function of a child process. It exits with 137 at its boundary, and with exitScenarioEnd if the scenario ends before.
func scenarioMain(text string) {
	var m crashPoint
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	s := &scenario{bulk: m.Bulk}
	s.left.Store(int64(m.Exit))
	var err error
	if s.store, err = m.open(context.Background(), s.boundary); err != nil {
		fmt.Println(err)
		os.Exit(exitFailed)
	}
	if s.journal, err = openJournal(m.Journal); err != nil {
		fmt.Println(err)
		os.Exit(exitFailed)
	}
	s.run(context.Background())
	if s.broken != nil {
		fmt.Println(s.broken)
		os.Exit(exitFailed)
	}
	os.Exit(exitScenarioEnd)
}

// boundary ends the process when the count of boundaries is reached. It is called before every statement and after every call.
func (s *scenario) boundary(name string) {
	if s.left.Add(-1) == 0 {
		fmt.Println(name)
		os.Exit(exitKilled)
	}
}

// after is the boundary between the return of a call and the record of its acknowledgement.
func (s *scenario) after(call string, errs ...error) {
	if err := errors.Join(errs...); err != nil {
		s.broken = errors.Join(s.broken, fmt.Errorf("%s: %w", call, err))
	}
	s.boundary("after " + call)
}

func (s *scenario) run(ctx context.Context) {
	s.after("listen", s.store.Apply(ctx, store.Change{Listen: []store.Listener{{Name: "matrix", Events: []string{"*"}}}}))
	s.enqueue(ctx)
	s.settle(ctx)
	s.reclaim(ctx)
	s.operate(ctx)
	s.expire(ctx)
}

// enqueue uses every way to enqueue: one job, with keys, with a delay, and in bulk.
func (s *scenario) enqueue(ctx context.Context) {
	s.enqueueDrafts(ctx, holdfast.Draft{Kind: "scene"})
	s.enqueueDrafts(ctx, holdfast.Draft{Kind: "scene", UniqueKey: "one"}, holdfast.Draft{Kind: "scene", UniqueKey: "one"}, holdfast.Draft{Kind: "scene", IdempotencyKey: "two"},
		holdfast.Draft{Kind: "other", Delay: instantly}, holdfast.Draft{Kind: "other", Priority: 9})
	bulk := make([]holdfast.Draft, s.bulk)
	for i := range bulk {
		bulk[i] = holdfast.Draft{Kind: "bulk", Priority: 5}
	}
	s.enqueueDrafts(ctx, bulk...)
}

func (s *scenario) enqueueDrafts(ctx context.Context, drafts ...holdfast.Draft) []holdfast.Receipt {
	receipts, err := s.store.Enqueue(ctx, drafts)
	s.after("enqueue", err)
	for _, r := range receipts {
		s.journal.write(line{Saw: sawReceipt, Job: r.ID})
	}
	return receipts
}

func (s *scenario) claim(ctx context.Context, n int) []store.Lease {
	leases, err := s.store.Claim(ctx, store.Claim{Worker: "scene", Queues: []string{holdfast.DefaultQueue}, Limit: n, Start: n - 1, Lease: instantly})
	s.after("claim", err)
	if len(leases) != n {
		s.broken = errors.Join(s.broken, fmt.Errorf("%d jobs were requested and %d claimed", n, len(leases)))
	}
	return leases
}

func settlement(l store.Lease, to holdfast.State) store.Settlement {
	s := store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: to}
	if to == holdfast.Queued || to == holdfast.Failed {
		s.Charge, s.Limit = store.ChargeFailure, 5
		s.Failure = &holdfast.Failure{Code: "SCENE", Category: "test", Message: "scripted"}
	}
	return s
}

func (s *scenario) send(ctx context.Context, settlements ...store.Settlement) {
	answers, err := s.store.Settle(ctx, settlements)
	s.after("settle", append(answers, err)...)
	for _, a := range settlements {
		s.journal.write(line{Saw: sawAnswer, Job: a.Job, Token: a.Token, To: a.To})
	}
}

// settle ends leases in every way that a handler can.
func (s *scenario) settle(ctx context.Context) {
	leases := s.claim(ctx, 5)
	if len(leases) < 5 {
		return
	}
	ids := []holdfast.ID{leases[0].ID, leases[1].ID}
	_, err := s.store.Renew(ctx, []store.Renewal{{Batch: leases[0].Batch, Running: ids}}, instantly)
	s.after("renew", err)
	answers, err := s.store.Note(ctx, []store.Note{{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, Checkpoint: json.RawMessage(`1`)}})
	s.after("note", append(answers, err)...)
	waiting := settlement(leases[2], holdfast.Queued)
	waiting.Delay = instantly
	s.send(ctx, settlement(leases[0], holdfast.Complete), settlement(leases[1], holdfast.Queued), waiting)
	s.send(ctx, settlement(leases[3], holdfast.Cancelled))
	_, err = s.store.Promote(ctx, 10)
	s.after("promote", err)
}

// reclaim loses a worker twice: the worker that reclaims its jobs is lost, too.
func (s *scenario) reclaim(ctx context.Context) {
	s.claim(ctx, 4)
	claim := store.Claim{Worker: "other", Limit: 1, Start: 1, Lease: instantly}
	for range 2 {
		var leases []store.Lease
		var err error
		for deadline := time.Now().Add(time.Minute); len(leases) == 0 && err == nil && time.Now().Before(deadline); {
			leases, err = s.store.Reclaim(ctx, claim)
		}
		s.after("reclaim", err)
		if len(leases) == 0 {
			s.broken = errors.Join(s.broken, errors.New("nothing was reclaimed"))
			return
		}
		lost := settlement(leases[0], holdfast.Queued)
		lost.Charge = store.ChargeCrash
		s.send(ctx, lost)
	}
}

// operate does what operators do: it retries a failed and a waiting job, cancels a queued and a processing job, and discards a dead letter.
func (s *scenario) operate(ctx context.Context) {
	leases := s.claim(ctx, 4)
	if len(leases) < 4 {
		return
	}
	waiting := settlement(leases[1], holdfast.Queued)
	waiting.Delay = instantly // it waits to be promoted, and nothing promotes it
	s.send(ctx, settlement(leases[0], holdfast.Failed), waiting, settlement(leases[2], holdfast.Failed))
	for _, l := range leases[:2] {
		_, err := s.store.Retry(ctx, s.intervention(l.ID))
		s.after("retry", err)
		s.journal.write(line{Saw: sawRetry, Job: l.ID})
	}
	s.after("discard", s.store.Discard(ctx, s.intervention(leases[2].ID)))
	_, err := s.store.Cancel(ctx, s.intervention(leases[3].ID)) // processing
	s.after("cancel", err)
	_, err = s.store.Retry(ctx, s.intervention(leases[3].ID)) // stuck: its lease has expired
	s.after("retry", err)
	queued := s.enqueueDrafts(ctx, holdfast.Draft{Kind: "scene", UniqueKey: "three", Priority: 20})
	if len(queued) == 1 {
		_, err = s.store.Cancel(ctx, s.intervention(queued[0].ID))
		s.after("cancel", err)
		s.journal.write(line{Saw: sawCancel, Job: queued[0].ID})
	}
	s.edit(ctx)
	s.after("pause", s.store.Pause(ctx, store.Hold{Kind: "unused", Actor: "scene"}))
	s.after("resume", s.store.Resume(ctx, store.Hold{Kind: "unused", Actor: "scene"}))
}

// edit changes the arguments, priority and delay of a waiting job.
func (s *scenario) edit(ctx context.Context) {
	waiting := s.enqueueDrafts(ctx, holdfast.Draft{Kind: "scene", Args: json.RawMessage(`{"to":"one"}`), Delay: instantly, Priority: 20})
	if len(waiting) != 1 {
		return
	}
	soon, first := time.Duration(0), int16(-3)
	job, err := s.store.Edit(ctx, store.Edit{Intervention: s.intervention(waiting[0].ID), Patch: json.RawMessage(`{"to":"two"}`), Priority: &first, Delay: &soon})
	if err == nil && !strings.Contains(string(job.Args), "two") {
		err = fmt.Errorf("it was edited to %s", job.Args)
	}
	s.after("edit", err)
	s.journal.write(line{Saw: sawEdit, Job: waiting[0].ID})
}

func (s *scenario) intervention(id holdfast.ID) store.Intervention {
	return store.Intervention{Job: id, Actor: "scene", Reason: "scripted"}
}

// expire lets a job expire.
func (s *scenario) expire(ctx context.Context) {
	s.enqueueDrafts(ctx, holdfast.Draft{Kind: "scene", ExpireIn: instantly})
	var leases []store.Lease
	var err error
	for deadline := time.Now().Add(time.Minute); len(leases) == 0 && err == nil && time.Now().Before(deadline); {
		leases, err = s.store.Expire(ctx, store.Claim{Worker: "scene", Limit: 10, Lease: instantly})
	}
	s.after("expire", err)
	for _, l := range leases {
		end := settlement(l, holdfast.Failed)
		end.Charge = store.ChargeNone
		s.send(ctx, end)
	}
}
