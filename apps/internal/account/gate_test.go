package account_test

import (
	"net/http/httptest"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/account"
)

// Browsers send the cookies of one port of a host to all others.
func TestTwoApplicationsOnOneHostHaveDifferentCookies(t *testing.T) {
	onBoth(t, func(s *scene) {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		other, err := account.Open(s.Context(), s.db, account.Config{KeyPrefix: "other"})
		s.is(err, nil)
		s.SetCookie(w, r, "a")
		other.SetCookie(w, r, "b")
		if set := w.Result().Cookies(); len(set) != 2 || set[0].Name == set[1].Name {
			s.Errorf("cookies: %v", set)
		}
	})
}
