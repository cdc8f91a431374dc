package client

import (
	"context"
	"errors"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// Holds lists the holds in force.
func (d *Operator) Holds(ctx context.Context) ([]ops.HoldStatus, error) {
	out, err := call(ctx, d.c, api.ListHolds, struct{}{})
	return out.Holds, err
}

// HeldLines lists the lines of order keys that dead letters hold.
func (d *Operator) HeldLines(ctx context.Context) (lines []store.HeldLine, more bool, err error) {
	out, err := call(ctx, d.c, api.ListHeldLines, struct{}{})
	return out.Lines, out.More, err
}

// Pause places a hold.
func (d *Operator) Pause(ctx context.Context, h store.Hold) error {
	body := api.HoldBody{HoldName: api.HoldNameOf(h), Word: api.Word{Actor: h.Actor, Reason: h.Reason}, Retries: h.Retries, AtMost: h.AtMost, Rate: h.Rate, For: h.For, Expected: h.Expected}
	_, err := act(ctx, d, api.PlaceHold, h.Actor, api.PauseIn{Body: body})
	return err
}

// Resume lifts a hold.
func (d *Operator) Resume(ctx context.Context, h store.Hold) error {
	_, err := act(ctx, d, api.LiftHold, h.Actor, api.LiftIn{Body: api.LiftBody{HoldName: api.HoldNameOf(h), Word: api.Word{Actor: h.Actor, Reason: h.Reason}}})
	return err
}

// Shares lists the owners whose weight was set.
func (d *Operator) Shares(ctx context.Context) ([]ops.Share, error) {
	out, err := call(ctx, d.c, api.ListShares, struct{}{})
	return out.Shares, err
}

// SetShare sets the weight of an owner.
func (d *Operator) SetShare(ctx context.Context, share ops.Share, by ops.Actor) error {
	_, err := act(ctx, d, api.SetShare, by.Name, api.ShareIn{Owner: share.Owner, Asked: api.Asked{Request: by.Request}, Body: api.ShareBody{Word: api.Word{Actor: by.Name, Reason: by.Reason}, Weight: share.Weight}})
	return err
}

// Breakers lists every dependency, by name.
func (d *Operator) Breakers(ctx context.Context) ([]ops.Breaker, error) {
	out, err := call(ctx, d.c, api.ListBreakers, struct{}{})
	return out.Breakers, err
}

// Breaker returns one breaker.
func (d *Operator) Breaker(ctx context.Context, dependency string) (ops.Breaker, error) {
	return call(ctx, d.c, api.GetBreaker, api.ByName{Name: dependency})
}

// OpenBreaker opens a breaker.
func (d *Operator) OpenBreaker(ctx context.Context, dependency string, by ops.Actor) error {
	_, err := act(ctx, d, api.OpenBreaker, by.Name, onNamed(dependency, by))
	return err
}

// CloseBreaker lets a dependency recover at once.
func (d *Operator) CloseBreaker(ctx context.Context, dependency string, by ops.Actor) error {
	_, err := act(ctx, d, api.CloseBreaker, by.Name, onNamed(dependency, by))
	return err
}

// ForceBreaker forces a breaker open or closed.
func (d *Operator) ForceBreaker(ctx context.Context, dependency string, open bool, by ops.Actor) error {
	_, err := act(ctx, d, api.ForceBreaker, by.Name, api.ForceIn{ByName: api.ByName{Name: dependency}, Asked: api.Asked{Request: by.Request}, Body: api.ForceBody{Word: api.Word{Actor: by.Name, Reason: by.Reason}, Open: open}})
	return err
}

// AutoBreaker returns a forced breaker to automatic control.
func (d *Operator) AutoBreaker(ctx context.Context, dependency string, by ops.Actor) error {
	_, err := act(ctx, d, api.AutoBreaker, by.Name, onNamed(dependency, by))
	return err
}

// PreviewRedrive returns what a redrive would do. It changes nothing.
func (d *Operator) PreviewRedrive(ctx context.Context, o redrive.Spec) (ops.Preview, error) {
	return act(ctx, d, api.PreviewRedrive, o.Actor, api.PreviewIn{Asked: api.Asked{Request: o.Request}, Body: api.OrderBody{Spec: o, Actor: o.Actor}})
}

// StartRedrive starts a redrive, which queues dead letters again or discards them. It sends an idempotency key and repeats the request while the server is
// unavailable: however often it is sent, one redrive starts.
func (d *Operator) StartRedrive(ctx context.Context, o redrive.Spec) (holdfast.ID, error) {
	if o.Actor == "" {
		return holdfast.ID{}, o.Check()
	}
	in := api.RedriveIn{Asked: api.Asked{Request: o.Request}, Key: holdfast.NewID().String(), Body: api.OrderBody{Spec: o, Actor: o.Actor}}
	out, err := call(ctx, d.c, api.StartRedrive, in, true)
	return out.ID, err
}

// Redrives lists redrives, newest first.
func (d *Operator) Redrives(ctx context.Context) ([]redrive.Progress, error) {
	out, err := call(ctx, d.c, api.ListRedrives, struct{}{})
	if err == nil {
		err = out.Err()
	}
	return out.Redrives, err
}

// Redrive returns one redrive.
func (d *Operator) Redrive(ctx context.Context, id holdfast.ID) (ops.Redrive, error) {
	return call(ctx, d.c, api.GetRedrive, api.ByRedrive{ID: id})
}

// PauseRedrive pauses a redrive: it takes no more dead letters until it is resumed.
func (d *Operator) PauseRedrive(ctx context.Context, id holdfast.ID, by ops.Actor) error {
	_, err := act(ctx, d, api.PauseRedrive, by.Name, api.OnRedrive{ByRedrive: api.ByRedrive{ID: id}, Said: saidBy(by)})
	return err
}

// ResumeRedrive resumes a redrive.
func (d *Operator) ResumeRedrive(ctx context.Context, id holdfast.ID, by ops.Actor) error {
	_, err := act(ctx, d, api.ResumeRedrive, by.Name, api.OnRedrive{ByRedrive: api.ByRedrive{ID: id}, Said: saidBy(by)})
	return err
}

// CancelRedrive ends a redrive for good.
func (d *Operator) CancelRedrive(ctx context.Context, id holdfast.ID, by ops.Actor) error {
	_, err := act(ctx, d, api.CancelRedrive, by.Name, api.OnRedrive{ByRedrive: api.ByRedrive{ID: id}, Said: saidBy(by)})
	return err
}

// ErrorGroups lists error groups, last seen first.
func (d *Operator) ErrorGroups(ctx context.Context, f store.ErrorFilter) (groups []store.ErrorGroup, cursor string, err error) {
	out, err := call(ctx, d.c, api.ListErrors, api.ErrorsIn(f))
	return out.Errors, out.Cursor, err
}

// ErrorGroup returns one error group.
func (d *Operator) ErrorGroup(ctx context.Context, fingerprint string) (ops.ErrorGroupDetail, error) {
	return call(ctx, d.c, api.GetError, api.ByFingerprint{Fingerprint: fingerprint})
}

// Triage sets the status of an error group, or adds a note to it.
func (d *Operator) Triage(ctx context.Context, t store.Triage) error {
	in := api.TriageIn{ByFingerprint: api.ByFingerprint{Fingerprint: t.Fingerprint}, Body: api.TriageBody{Word: api.Word{Actor: t.Actor, Reason: t.Reason}, Status: t.Status, For: t.For, Count: t.Count, Version: t.Version}}
	_, err := act(ctx, d, api.TriageError, t.Actor, in)
	return err
}

// Policy returns the applied policy.
func (d *Operator) Policy(ctx context.Context) (ops.Policy, error) {
	return call(ctx, d.c, api.GetPolicy, struct{}{})
}

// ApplyPolicy applies a policy to all workers.
func (d *Operator) ApplyPolicy(ctx context.Context, o ops.PolicyRequest, by ops.Actor) (ops.Policy, error) {
	in := api.PolicyIn{Asked: api.Asked{Request: by.Request}, Match: matching(o.Replaces), Body: api.PolicyBody{Word: api.Word{Actor: by.Name, Reason: by.Reason}, Text: o.Text, Codes: o.Codes}}
	out, err := act(ctx, d, api.ApplyPolicy, by.Name, in)
	return out, asConflict(err)
}

// ExplainPolicy returns the settings that apply to failures, and the source of each.
func (d *Operator) ExplainPolicy(ctx context.Context, q ops.PolicyQuestion) (policy.Explanation, error) {
	return call(ctx, d.c, api.ExplainPolicy, api.ExplainPolicyIn(q))
}

// RemovePolicy removes the applied policy. Workers return to the policy of their configuration.
func (d *Operator) RemovePolicy(ctx context.Context, version int, by ops.Actor) error {
	_, err := act(ctx, d, api.RemovePolicy, by.Name, api.PolicyDrop{Asked: api.Asked{Request: by.Request}, Dropped: droppedBy(by), Match: matching(version)})
	return asConflict(err)
}

// matching is a version as an If-Match header; empty when any version is accepted.
func matching(version int) string {
	if version == 0 {
		return ""
	}
	return strconv.Quote(strconv.Itoa(version))
}

// asConflict turns ErrPrecondition into the conflict that ops.Operator documents.
func asConflict(err error) error {
	if errors.Is(err, api.ErrPrecondition) {
		return &holdfast.Error{Err: holdfast.ErrConflict, Message: err.Error(), Cause: err}
	}
	return err
}

// Codes lists every known failure code.
func (d *Operator) Codes(ctx context.Context) ([]catalog.Entry, error) {
	out, err := call(ctx, d.c, api.ListCodes, struct{}{})
	return out.Codes, err
}

// Keys lists API keys, newest first.
func (d *Operator) Keys(ctx context.Context) ([]apikey.Key, error) {
	out, err := call(ctx, d.c, api.ListKeys, struct{}{})
	return out.Keys, err
}

// CreateKey makes an API key. The text is returned only here; the server keeps a hash.
func (d *Operator) CreateKey(ctx context.Context, o apikey.Request, by ops.Actor) (k apikey.Key, text string, err error) {
	out, err := act(ctx, d, api.MakeKey, by.Name, api.MakeKeyIn{Asked: api.Asked{Request: by.Request}, Body: api.KeyBody{Request: o, Word: api.Word{Actor: by.Name, Reason: by.Reason}}})
	return out.Key, out.Text, err
}

// RevokeKey revokes an API key.
func (d *Operator) RevokeKey(ctx context.Context, id string, by ops.Actor) error {
	_, err := act(ctx, d, api.RevokeKey, by.Name, api.DropKey{ID: id, Asked: api.Asked{Request: by.Request}, Dropped: droppedBy(by)})
	return err
}
