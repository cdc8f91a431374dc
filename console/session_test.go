package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A session ends two hours after it was last used, and twelve after it began, whatever it is used for.
func TestASessionEnds(t *testing.T) {
	var all sessions
	begun := time.Now()
	visit := func(cookie string, after time.Duration) bool {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: "holdfast_session", Value: cookie})
		_, known := all.find(r, "holdfast_session", begun.Add(after))
		return known
	}
	idle, busy := all.begin("a key", begun), all.begin("a key", begun)
	if !visit(idle, 119*time.Minute) || visit(idle, 119*time.Minute+2*time.Hour+time.Second) {
		t.Error("a session does not end two hours after it was last used")
	}
	for after := time.Hour; after <= 12*time.Hour; after += time.Hour {
		if !visit(busy, after) {
			t.Fatalf("a session in use ended after %v", after)
		}
	}
	if visit(busy, 12*time.Hour+time.Second) {
		t.Error("a session goes on after twelve hours")
	}
	if visit("another", 0) {
		t.Error("a cookie that nobody was given opens something")
	}
}
