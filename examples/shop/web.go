package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/telemetry"
)

// Handler serves the shop, its console and its metrics.
func (s *Shop) Handler() (http.Handler, error) {
	pages, err := s.Worker.Console(console.Config{Prefix: "/console", Who: staff})
	if err != nil {
		return nil, err
	}
	metrics := telemetry.New(telemetry.Config{Source: s.Worker.Operator, Version: "1.0.0"})
	s.Worker.Observe(metrics.ObserveAttempt)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.postOrder)
	mux.HandleFunc("GET /orders/{id}", s.getOrder)
	mux.Handle("/console/", pages)
	mux.Handle("GET /metrics", metrics.Handler())
	return mux, nil
}

// staff says who a visitor of the console is. A real shop asks its own sign-in; this one admits programs on the same machine only, because it listens there.
func staff(*http.Request) (console.Visitor, error) {
	return console.Visitor{Name: "staff", Scope: "operator"}, nil
}

// An order is what a request places, and what is shown of it.
type order struct {
	ID    int64  `json:"id,omitempty"`
	Item  string `json:"item"`
	Cents int    `json:"cents"`
	State string `json:"state,omitempty"`
	Job   string `json:"job,omitempty"`
}

func (s *Shop) postOrder(w http.ResponseWriter, r *http.Request) {
	var placed order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&placed); err != nil || placed.Item == "" || placed.Cents <= 0 {
		http.Error(w, `send {"item": "teapot", "cents": 1250}`, http.StatusBadRequest)
		return
	}
	id, job, err := s.PlaceOrder(r.Context(), placed.Item, placed.Cents)
	if err != nil {
		s.log.Error("placing an order", "error", err)
		http.Error(w, "the order could not be placed: try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Location", fmt.Sprint("/orders/", id))
	answer(w, http.StatusCreated, order{ID: id, Item: placed.Item, Cents: placed.Cents, State: "new", Job: job.String()})
}

func (s *Shop) getOrder(w http.ResponseWriter, r *http.Request) {
	var o order
	row := s.db.QueryRowContext(r.Context(), "SELECT id, item, cents, state, job FROM orders WHERE id = ?", r.PathValue("id"))
	switch err := row.Scan(&o.ID, &o.Item, &o.Cents, &o.State, &o.Job); {
	case errors.Is(err, sql.ErrNoRows):
		http.Error(w, "there is no such order", http.StatusNotFound)
	case err != nil:
		s.log.Error("reading an order", "error", err)
		http.Error(w, "the order could not be read: try again", http.StatusServiceUnavailable)
	default:
		answer(w, http.StatusOK, o)
	}
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client is gone
}
