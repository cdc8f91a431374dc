package api

import (
	"context"
	"errors"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// Holds lists the holds in force.
func (d *Desk) Holds(ctx context.Context) ([]ops.Held, error) {
	out, err := call(ctx, d.c, ListHolds, struct{}{})
	return out.Holds, err
}

// Pause places a hold.
func (d *Desk) Pause(ctx context.Context, h holdfast.Hold) error {
	body := HoldBody{HoldName: holdName(h), Word: Word{h.Actor, h.Reason}, Retries: h.Retries, AtMost: h.AtMost, Rate: h.Rate, For: h.For, Expected: h.Expected}
	_, err := act(ctx, d, PlaceHold, h.Actor, PauseIn{Body: body})
	return err
}

// Resume lifts a hold.
func (d *Desk) Resume(ctx context.Context, h holdfast.Hold) error {
	_, err := act(ctx, d, LiftHold, h.Actor, LiftIn{Body: LiftBody{holdName(h), Word{h.Actor, h.Reason}}})
	return err
}

// Shares lists the owners whose weight was set.
func (d *Desk) Shares(ctx context.Context) ([]ops.Share, error) {
	out, err := call(ctx, d.c, ListShares, struct{}{})
	return out.Shares, err
}

// SetShare sets the weight of an owner.
func (d *Desk) SetShare(ctx context.Context, share ops.Share, by ops.By) error {
	_, err := act(ctx, d, SetShare, by.Actor, ShareIn{share.Owner, Asked{by.Request}, ShareBody{Word{by.Actor, by.Reason}, share.Weight}})
	return err
}

// Breakers lists every dependency, by name.
func (d *Desk) Breakers(ctx context.Context) ([]ops.Breaker, error) {
	out, err := call(ctx, d.c, ListBreakers, struct{}{})
	return out.Breakers, err
}

// Breaker returns one breaker.
func (d *Desk) Breaker(ctx context.Context, dependency string) (ops.Breaker, error) {
	return call(ctx, d.c, GetBreaker, ByName{dependency})
}

// OpenBreaker opens a breaker.
func (d *Desk) OpenBreaker(ctx context.Context, dependency string, by ops.By) error {
	_, err := act(ctx, d, OpenBreaker, by.Actor, onNamed(dependency, by))
	return err
}

// CloseBreaker lets a dependency recover at once.
func (d *Desk) CloseBreaker(ctx context.Context, dependency string, by ops.By) error {
	_, err := act(ctx, d, CloseBreaker, by.Actor, onNamed(dependency, by))
	return err
}

// ForceBreaker forces a breaker open or closed.
func (d *Desk) ForceBreaker(ctx context.Context, dependency string, open bool, by ops.By) error {
	_, err := act(ctx, d, ForceBreaker, by.Actor, ForceIn{ByName{dependency}, Asked{by.Request}, ForceBody{Word{by.Actor, by.Reason}, open}})
	return err
}

// AutoBreaker returns a forced breaker to automatic control.
func (d *Desk) AutoBreaker(ctx context.Context, dependency string, by ops.By) error {
	_, err := act(ctx, d, AutoBreaker, by.Actor, onNamed(dependency, by))
	return err
}

// PreviewRedrive returns what a redrive would do. It changes nothing.
func (d *Desk) PreviewRedrive(ctx context.Context, o redrive.Order) (ops.Preview, error) {
	return act(ctx, d, PreviewRedrive, o.Actor, PreviewIn{Asked{o.Request}, OrderBody{Order: o, Actor: o.Actor}})
}

// StartRedrive starts a redrive, which queues dead letters again or discards them. It sends an idempotency key and repeats the request while the server is
// unavailable: however often it is sent, one redrive starts.
func (d *Desk) StartRedrive(ctx context.Context, o redrive.Order) (holdfast.ID, error) {
	if o.Actor == "" {
		return holdfast.ID{}, o.Check()
	}
	in := RedriveIn{Asked{o.Request}, holdfast.NewID().String(), OrderBody{Order: o, Actor: o.Actor}}
	out, err := call(ctx, d.c, StartRedrive, in, true)
	return out.ID, err
}

// Redrives lists redrives, newest first.
func (d *Desk) Redrives(ctx context.Context) ([]redrive.Progress, error) {
	out, err := call(ctx, d.c, ListRedrives, struct{}{})
	if err == nil {
		err = out.err()
	}
	return out.Redrives, err
}

// Redrive returns one redrive.
func (d *Desk) Redrive(ctx context.Context, id holdfast.ID) (ops.Redrive, error) {
	return call(ctx, d.c, GetRedrive, ByRedrive{id})
}

// PauseRedrive pauses a redrive: it takes no more dead letters until it is resumed.
func (d *Desk) PauseRedrive(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, PauseRedrive, by.Actor, OnRedrive{ByRedrive{id}, saidBy(by)})
	return err
}

// ResumeRedrive resumes a redrive.
func (d *Desk) ResumeRedrive(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, ResumeRedrive, by.Actor, OnRedrive{ByRedrive{id}, saidBy(by)})
	return err
}

// CancelRedrive ends a redrive for good.
func (d *Desk) CancelRedrive(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, CancelRedrive, by.Actor, OnRedrive{ByRedrive{id}, saidBy(by)})
	return err
}

// ErrorGroups lists error groups, last seen first.
func (d *Desk) ErrorGroups(ctx context.Context, f holdfast.ErrorFilter) (groups []holdfast.ErrorGroup, cursor string, err error) {
	out, err := call(ctx, d.c, ListErrors, ErrorsIn(f))
	return out.Errors, out.Cursor, err
}

// ErrorGroup returns one error group.
func (d *Desk) ErrorGroup(ctx context.Context, fingerprint string) (ops.Trouble, error) {
	return call(ctx, d.c, GetError, ByFingerprint{fingerprint})
}

// Triage sets the status of an error group, or adds a note to it.
func (d *Desk) Triage(ctx context.Context, t holdfast.Triage) error {
	in := TriageIn{ByFingerprint: ByFingerprint{t.Fingerprint}, Body: TriageBody{Word{t.Actor, t.Reason}, t.Status, t.For, t.Count, t.Version}}
	_, err := act(ctx, d, TriageError, t.Actor, in)
	return err
}

// Policy returns the applied policy.
func (d *Desk) Policy(ctx context.Context) (ops.Policy, error) {
	return call(ctx, d.c, GetPolicy, struct{}{})
}

// ApplyPolicy applies a policy to all workers.
func (d *Desk) ApplyPolicy(ctx context.Context, o ops.PolicyOrder, by ops.By) (ops.Policy, error) {
	in := PolicyIn{Asked: Asked{by.Request}, Match: matching(o.Replaces), Body: PolicyBody{Word{by.Actor, by.Reason}, o.Text, o.Codes}}
	out, err := act(ctx, d, ApplyPolicy, by.Actor, in)
	return out, asConflict(err)
}

// ExplainPolicy returns the settings that apply to failures, and the source of each.
func (d *Desk) ExplainPolicy(ctx context.Context, q ops.PolicyQuestion) (policy.Explanation, error) {
	return call(ctx, d.c, ExplainPolicy, ExplainPolicyIn(q))
}

// RemovePolicy removes the applied policy. Workers return to the policy of their configuration.
func (d *Desk) RemovePolicy(ctx context.Context, version int, by ops.By) error {
	_, err := act(ctx, d, RemovePolicy, by.Actor, PolicyDrop{Asked{by.Request}, droppedBy(by), matching(version)})
	return asConflict(err)
}

// matching is a version as an If-Match header; empty when any version is accepted.
func matching(version int) string {
	if version == 0 {
		return ""
	}
	return strconv.Quote(strconv.Itoa(version))
}

// asConflict turns ErrPrecondition into the conflict that ops.Desk documents.
func asConflict(err error) error {
	if errors.Is(err, ErrPrecondition) {
		return &holdfast.Error{Kind: holdfast.ErrConflict, Message: err.Error(), Cause: err}
	}
	return err
}

// Codes lists every known failure code.
func (d *Desk) Codes(ctx context.Context) ([]catalog.Entry, error) {
	out, err := call(ctx, d.c, ListCodes, struct{}{})
	return out.Codes, err
}

// Keys lists API keys, newest first.
func (d *Desk) Keys(ctx context.Context) ([]apikey.Key, error) {
	out, err := call(ctx, d.c, ListKeys, struct{}{})
	return out.Keys, err
}

// MakeKey makes an API key. The text is returned only here; the server keeps a hash.
func (d *Desk) MakeKey(ctx context.Context, o apikey.Order, by ops.By) (k apikey.Key, text string, err error) {
	out, err := act(ctx, d, MakeKey, by.Actor, MakeKeyIn{Asked{by.Request}, KeyBody{o, Word{by.Actor, by.Reason}}})
	return out.Key, out.Text, err
}

// RevokeKey revokes an API key.
func (d *Desk) RevokeKey(ctx context.Context, id string, by ops.By) error {
	_, err := act(ctx, d, RevokeKey, by.Actor, DropKey{id, Asked{by.Request}, droppedBy(by)})
	return err
}
