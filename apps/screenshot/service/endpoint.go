package service

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
)

// An Endpoint is an address of an organisation that is called with the retry events of its shots.
type Endpoint struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Events    []string  `json:"events"` // types; empty: all
	CreatedAt time.Time `json:"createdAt"`
}

// maxEndpoints is how many endpoints an organisation may have.
const maxEndpoints = 10

var endpointSchema = database.Schema{Name: "screenshot endpoints", Steps: []string{`
CREATE TABLE screenshot_endpoint (id TEXT PRIMARY KEY, owner TEXT NOT NULL, url TEXT NOT NULL, events TEXT NOT NULL, created_at BIGINT NOT NULL);
CREATE INDEX screenshot_endpoint_owner ON screenshot_endpoint (owner, created_at);
`}}

var errNoEndpoint = &Error{Code: code.NotFound, Message: "There is no such webhook. It may have been removed."}

// AddEndpoint adds an endpoint to an organisation. Only its address and events are read.
func (s *Service) AddEndpoint(ctx context.Context, owner string, e Endpoint) (Endpoint, error) {
	if _, err := s.cfg.Guard.Check(e.URL); err != nil {
		return e, invalid("url", "%v", err)
	}
	for _, name := range e.Events {
		if !slices.Contains(RetryEventTypes, name) {
			return e, invalid("events", "%.40q: use %s", name, strings.Join(RetryEventTypes, ", "))
		}
	}
	e.ID, e.CreatedAt = "ep_"+strings.ToLower(rand.Text()[:16]), time.Now().UTC().Truncate(time.Microsecond)
	e.Events = slices.Compact(slices.Sorted(slices.Values(append([]string{}, e.Events...))))
	return e, s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		n, err := tx.Changed(ctx, `INSERT INTO screenshot_endpoint (id, owner, url, events, created_at) SELECT ?, ?, ?, ?, CAST(? AS BIGINT) WHERE (SELECT count(*) FROM screenshot_endpoint WHERE owner = ?) < ?`,
			e.ID, owner, e.URL, strings.Join(e.Events, " "), database.Micros(e.CreatedAt), owner, maxEndpoints)
		if err == nil && n == 0 {
			return &Error{Code: code.Validation, Message: "An organisation has at most 10 webhooks: remove one first."}
		}
		return err
	})
}

// RemoveEndpoint removes an endpoint of an organisation. Events that have not been delivered to it are dropped.
func (s *Service) RemoveEndpoint(ctx context.Context, owner, id string) error {
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		n, err := tx.Changed(ctx, `DELETE FROM screenshot_endpoint WHERE owner = ? AND id = ?`, owner, id)
		if err == nil && n == 0 {
			return errNoEndpoint
		}
		return err
	})
}

// Endpoints returns the endpoints of an organisation, in the order in which they were added.
func (s *Service) Endpoints(ctx context.Context, owner string) (list []Endpoint, err error) {
	err = s.cfg.DB.Each(ctx, `SELECT id, url, events, created_at FROM screenshot_endpoint WHERE owner = ? ORDER BY created_at, id`, []any{owner}, func(scan func(...any) error) error {
		e, err := scanEndpoint(scan)
		list = append(list, e)
		return err
	})
	return list, err
}

func (s *Service) endpoint(ctx context.Context, owner, id string) (e Endpoint, err error) {
	err = s.cfg.DB.Each(ctx, `SELECT id, url, events, created_at FROM screenshot_endpoint WHERE owner = ? AND id = ?`, []any{owner, id}, func(scan func(...any) error) error {
		e, err = scanEndpoint(scan)
		return err
	})
	if err == nil && e.ID == "" {
		err = errNoEndpoint
	}
	return e, err
}

func scanEndpoint(scan func(...any) error) (e Endpoint, err error) {
	events, at := "", int64(0)
	err = scan(&e.ID, &e.URL, &events, &at)
	e.Events, e.CreatedAt = strings.Fields(events), database.Time(at)
	return e, err
}
