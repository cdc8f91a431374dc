package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Server) mountRedrives() {
	operator := s.cfg.Operator
	mount(s, api.PreviewRedrive, func(ctx context.Context, c Caller, in *api.PreviewIn) (ops.Preview, error) {
		return operator.PreviewRedrive(ctx, orderOf(c, in.Body))
	})
	mount(s, api.StartRedrive, s.startRedrive)
	mount(s, api.ListRedrives, func(ctx context.Context, _ Caller, _ *struct{}) (out api.RedrivesOut, err error) {
		out.Redrives, err = operator.Redrives(ctx)
		return out, out.Complain(err)
	})
	mount(s, api.GetRedrive, func(ctx context.Context, _ Caller, in *api.ByRedrive) (ops.Redrive, error) {
		return operator.Redrive(ctx, in.ID)
	})
	for _, verb := range []struct {
		route api.Route[api.OnRedrive, nothing]
		do    func(ctx context.Context, id holdfast.ID, by ops.Actor) error
	}{{api.PauseRedrive, operator.PauseRedrive}, {api.ResumeRedrive, operator.ResumeRedrive}, {api.CancelRedrive, operator.CancelRedrive}} {
		mount(s, verb.route, func(ctx context.Context, c Caller, in *api.OnRedrive) (nothing, error) {
			return nothing{}, verb.do(ctx, in.ID, c.by(in.Body))
		})
	}
}

func orderOf(c Caller, b api.OrderBody) redrive.Spec {
	o := b.Spec
	o.Actor, o.Request, o.Token = c.actor(b.Actor), c.Request, ""
	return o
}

// namespaceRedrive is the namespace of the records of redrives.
const namespaceRedrive = "redrive"

// namespaceOrder is the namespace of the records of idempotency keys of redrives.
const namespaceOrder = "redrive-order"

// A startRecord maps an idempotency key to a redrive. It is written before the redrive is started. Its token is made from the key and the request, so
// that the redrive can be found again if the process dies before it has recorded the id. The request id cannot identify it, because callers choose that.
type startRecord struct {
	Digest  string      `json:"digest"` // of the request
	Token   string      `json:"token"`
	Redrive holdfast.ID `json:"redrive,omitzero"`
}

// startRedrive starts a redrive. With an idempotency key it starts one redrive, however often the request is sent and by however many servers:
//
//  1. It writes the startRecord. The store accepts one writer; the others get a conflict and answer "being started".
//  2. It looks for a redrive with the record's token, which an earlier attempt may have started, and starts one only if there is none.
//  3. It writes the id into the record. If the process dies before, the next request finds the redrive by its token.
//
// A record without an id blocks others for startWithin; after that its writer counts as dead.
func (s *Server) startRedrive(ctx context.Context, c Caller, in *api.RedriveIn) (out api.RedriveStarted, err error) {
	o := orderOf(c, in.Body)
	if in.Key == "" {
		out.ID, err = s.cfg.Operator.StartRedrive(ctx, o)
		return out, err
	}
	if len(in.Key) > check.MaxKey {
		return out, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the idempotency key is too long: use at most 255 bytes"}
	}
	text, err := api.Marshal(in.Body)
	if err != nil {
		return out, err
	}
	name, mine := digest(c.Key+"\n"+in.Key), startRecord{Digest: digest(string(text))}
	mine.Token = digest(name + mine.Digest)
	record, known, err := s.findStart(ctx, name)
	if err == nil && record.Version > 0 {
		mine, out.ID, err = known, known.Redrive, s.checkRestart(record, known, mine)
	}
	if err != nil || !out.ID.IsZero() {
		return out, err
	}
	if record, err = s.saveStart(ctx, record, mine); err != nil {
		return out, err
	}
	if out.ID, err = s.redriveByToken(ctx, mine.Token); err == nil && out.ID.IsZero() {
		o.Token = mine.Token
		out.ID, err = s.cfg.Operator.StartRedrive(ctx, o)
	}
	if errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrInvalid) {
		record.Body = nil // refused, so nothing was started: the key can be used again
		return out, errors.Join(err, s.cfg.Store.Apply(ctx, store.Change{Records: []store.Record{record}}))
	}
	if err != nil { // the redrive may have been started: the next request looks for it first
		return out, err
	}
	mine.Redrive = out.ID
	_, err = s.saveStart(ctx, record, mine)
	return out, err
}

// startWithin is the time that a server has to start a redrive. After that it counts as dead, and the next request continues.
const startWithin = time.Minute

// checkRestart refuses a key that was used for another request, or whose redrive is being started at this moment.
func (s *Server) checkRestart(r store.Record, known, mine startRecord) error {
	switch {
	case known.Digest != mine.Digest:
		return &holdfast.Error{Err: api.ErrReused, Message: "this idempotency key was used for another redrive: use a new key for a new request"}
	case known.Redrive.IsZero() && r.AsOf.Sub(r.KeptAt) < startWithin:
		return startingNow()
	}
	return nil
}

func startingNow() error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: "the same redrive is being started at this moment: send the request again in a moment"}
}

func (s *Server) findStart(ctx context.Context, name string) (r store.Record, o startRecord, err error) {
	records, err := s.cfg.Store.Records(ctx, namespaceOrder)
	for _, r := range records {
		if r.Name == name {
			return r, o, json.Unmarshal(r.Body, &o)
		}
	}
	return store.Record{Namespace: namespaceOrder, Name: name}, o, err
}

func (s *Server) saveStart(ctx context.Context, r store.Record, o startRecord) (store.Record, error) {
	var err error
	if r.Body, err = json.Marshal(o); err == nil {
		err = s.cfg.Store.Apply(ctx, store.Change{Records: []store.Record{r}})
	}
	if errors.Is(err, holdfast.ErrConflict) {
		err = startingNow()
	}
	r.Version++
	return r, err
}

// redriveByToken finds the redrive with a token. A zero id means that there is none.
func (s *Server) redriveByToken(ctx context.Context, token string) (holdfast.ID, error) {
	list, err := s.cfg.Operator.Redrives(ctx)
	for _, p := range list {
		if token != "" && p.Spec.Token == token {
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
