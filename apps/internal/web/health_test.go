package web

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPartThatDecidesMakesTheProcessNotReadyAndAnotherOneDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store, stream error
		asked := 0
		h := NewHealth(slog.New(slog.DiscardHandler),
			Check{Name: "store", Ask: func(context.Context) error { asked++; return store }},
			Check{Name: "stream", Optional: true, Ask: func(context.Context) error { return stream }})
		broken := errors.New("secret")
		for _, step := range []struct {
			store, stream error
			want          string
			status        int
		}{{nil, nil, "ok", 200}, {nil, broken, "degraded", 200}, {broken, nil, "not ready", 503}, {broken, broken, "not ready", 503}} {
			store, stream = step.store, step.stream
			for range 3 {
				if got, status := h.Ready(t.Context()); got.Status != step.want || status != step.status || len(got.Checks) != 2 {
					t.Errorf("%+v %d, want %s", got, status, step.want)
				}
			}
			time.Sleep(healthMaxAge)
		}
		if asked != 4 {
			t.Errorf("the store was asked %d times", asked)
		}
		h.Drain()
		if got, status := h.Ready(t.Context()); status != 503 || got.Checks[0] != (Checked{Name: "serving"}) {
			t.Errorf("%+v %d", got, status)
		}
	})
}
