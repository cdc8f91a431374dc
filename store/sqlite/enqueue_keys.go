package sqlite

import (
	"bytes"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// takeIdempotencyKey takes the idempotency key of a draft, or returns the job that was enqueued with it. The primary
// key of the table decides, so concurrent enqueues with one key make one job. A draft that differs from the one that
// used the key is refused.
func (e *enqueuer) takeIdempotencyKey(d *holdfast.Draft) (existing holdfast.ID, err error) {
	digest := sqltext.Digest(*d)
	added, err := e.exec("idempotency_add", d.Owner, d.IdempotencyKey, digest[:], d.ID, e.now)
	if err != nil || added == 1 {
		return existing, err
	}
	var other []byte
	if _, err := e.one("idempotency_find", []any{d.Owner, d.IdempotencyKey}, &other, &existing); err != nil {
		return existing, err
	}
	if !bytes.Equal(other, digest[:]) && !e.lenient {
		return holdfast.ID{}, rule.KeyUsed(d.IdempotencyKey, existing)
	}
	return existing, nil
}

// takeUniqueKey takes the unique key of a draft, or returns the job that holds it, after the draft has replaced its content if it asks to. In that case the draft's
// idempotency key is bound to that job too.
func (e *enqueuer) takeUniqueKey(d *holdfast.Draft) (existing holdfast.ID, replaced bool, err error) {
	added, err := e.exec("unique_add", d.Owner, d.Kind, d.UniqueKey, d.ID)
	if err != nil || added == 1 {
		return existing, false, err
	}
	if _, err := e.one("unique_find", []any{d.Owner, d.Kind, d.UniqueKey}, &existing); err != nil {
		return existing, false, err
	}
	if d.Replace != nil {
		if existing, replaced, err = e.replace(d, existing); err != nil {
			return existing, false, err
		}
	}
	if d.IdempotencyKey != "" && !existing.IsZero() {
		_, err = e.exec("idempotency_bind", d.Owner, d.IdempotencyKey, existing)
	}
	return existing, replaced, err
}
