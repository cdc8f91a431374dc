package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountRedrives() {
	desk := s.cfg.Desk
	mount(s, api.PreviewRedrive, func(ctx context.Context, c Caller, in *api.PreviewIn) (ops.Preview, error) {
		return desk.PreviewRedrive(ctx, orderOf(c, in.Body))
	})
	mount(s, api.StartRedrive, s.startRedrive)
	mount(s, api.ListRedrives, func(ctx context.Context, _ Caller, _ *struct{}) (out api.RedrivesOut, err error) {
		out.Redrives, err = desk.Redrives(ctx)
		return out, out.Complain(err)
	})
	mount(s, api.GetRedrive, func(ctx context.Context, _ Caller, in *api.ByRedrive) (ops.Redrive, error) {
		return desk.Redrive(ctx, in.ID)
	})
	for _, verb := range []struct {
		route api.Route[api.OnRedrive, nothing]
		do    func(ctx context.Context, id holdfast.ID, by ops.By) error
	}{{api.PauseRedrive, desk.PauseRedrive}, {api.ResumeRedrive, desk.ResumeRedrive}, {api.CancelRedrive, desk.CancelRedrive}} {
		mount(s, verb.route, func(ctx context.Context, c Caller, in *api.OnRedrive) (nothing, error) {
			return nothing{}, verb.do(ctx, in.ID, c.by(in.Body))
		})
	}
}

func orderOf(c Caller, b api.OrderBody) redrive.Order {
	o := b.Order
	o.Actor, o.Request, o.Token = c.actor(b.Actor), c.Request, ""
	return o
}

// redriveRoom is where redrives are kept, as records.
const redriveRoom = "redrive"

// orderRoom remembers under which keys redrives were ordered.
const orderRoom = "redrive-order"

// An ordered redrive is remembered before it is started. Its token is made from the idempotency key and the order, so that the redrive can be found again when
// the process that started it died before it could remember the redrive's id. The request id does not identify it: callers choose that.
type ordered struct {
	Digest  string      `json:"digest"` // of the order
	Token   string      `json:"token"`
	Redrive holdfast.ID `json:"redrive,omitzero"`
}

// startRedrive starts one. With an idempotency key it is started once, however often it is asked for.
func (s *Server) startRedrive(ctx context.Context, c Caller, in *api.RedriveIn) (out api.RedriveStarted, err error) {
	o := orderOf(c, in.Body)
	if in.Key == "" {
		out.ID, err = s.cfg.Desk.StartRedrive(ctx, o)
		return out, err
	}
	if len(in.Key) > holdfast.MaxKey {
		return out, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the idempotency key is too long: use at most 255 bytes"}
	}
	text, err := api.Marshal(in.Body)
	if err != nil {
		return out, err
	}
	name, mine := digest(c.Key+"\n"+in.Key), ordered{Digest: digest(string(text))}
	mine.Token = digest(name + mine.Digest)
	record, known, err := s.orderedBefore(ctx, name)
	if err == nil && record.Version > 0 {
		mine, out.ID, err = known, known.Redrive, s.sameOrder(record, known, mine)
	}
	if err != nil || !out.ID.IsZero() {
		return out, err
	}
	if record, err = s.remember(ctx, record, mine); err != nil {
		return out, err
	}
	if out.ID, err = s.startedBy(ctx, mine.Token); err == nil && out.ID.IsZero() {
		o.Token = mine.Token
		out.ID, err = s.cfg.Desk.StartRedrive(ctx, o)
	}
	if errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrInvalid) {
		record.Body = nil // it was refused, so nothing was started: the key is free again
		return out, errors.Join(err, s.cfg.Store.Keep(ctx, holdfast.Change{Records: []holdfast.Record{record}}))
	}
	if err != nil { // it may have been started all the same: whoever asks again looks for it first
		return out, err
	}
	mine.Redrive = out.ID
	_, err = s.remember(ctx, record, mine)
	return out, err
}

// startWithin is how long whoever begins to start a redrive is left alone. After that it is believed dead, and the next one takes over.
const startWithin = time.Minute

// sameOrder refuses a key that was used for another order, or whose redrive somebody is starting right now.
func (s *Server) sameOrder(r holdfast.Record, known, mine ordered) error {
	switch {
	case known.Digest != mine.Digest:
		return &holdfast.Error{Kind: api.ErrReused, Message: "this idempotency key was used for another redrive: use a new one for a new order"}
	case known.Redrive.IsZero() && r.AsOf.Sub(r.KeptAt) < startWithin:
		return startingNow()
	}
	return nil
}

func startingNow() error {
	return &holdfast.Error{Kind: holdfast.ErrConflict, Message: "the same redrive is being started right now: ask again in a moment"}
}

func (s *Server) orderedBefore(ctx context.Context, name string) (r holdfast.Record, o ordered, err error) {
	records, err := s.cfg.Store.Records(ctx, orderRoom)
	for _, r := range records {
		if r.Name == name {
			return r, o, json.Unmarshal(r.Body, &o)
		}
	}
	return holdfast.Record{Room: orderRoom, Name: name}, o, err
}

func (s *Server) remember(ctx context.Context, r holdfast.Record, o ordered) (holdfast.Record, error) {
	var err error
	if r.Body, err = json.Marshal(o); err == nil {
		err = s.cfg.Store.Keep(ctx, holdfast.Change{Records: []holdfast.Record{r}})
	}
	if errors.Is(err, holdfast.ErrConflict) {
		err = startingNow()
	}
	r.Version++
	return r, err
}

// startedBy finds the redrive that an order has started; none is no error.
func (s *Server) startedBy(ctx context.Context, token string) (holdfast.ID, error) {
	list, err := s.cfg.Desk.Redrives(ctx)
	for _, p := range list {
		if token != "" && p.Order.Token == token {
			return p.ID, nil
		}
	}
	if complaint := new(api.Partial).Complain(err); complaint != nil {
		return holdfast.ID{}, complaint
	}
	return holdfast.ID{}, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
