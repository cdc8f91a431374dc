package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// A flash is the message of an action. The next page shows it once. It is carried in a cookie that scripts cannot read.
type flash struct {
	Text string        `json:"text"`
	Bad  bool          `json:"bad,omitempty"`
	Kept []holdfast.ID `json:"kept,omitempty"` // jobs that stay selected because the action failed for them
}

// Keeps reports whether a job stays selected.
func (s *flash) Keeps(id holdfast.ID) bool {
	if s == nil {
		return false
	}
	for _, one := range s.Kept {
		if one == id {
			return true
		}
	}
	return false
}

const (
	flashCookie  = "holdfast_flash"
	maxFlashText = 1200 // bytes of text; browsers limit a cookie to about 4 KB
	maxKept      = 50
)

// finishAction redirects after an action and sets its message.
func (c *Console) finishAction(w http.ResponseWriter, q *request, result actionResult) {
	to := q.back()
	if result.to != "" {
		to = q.link(result.to)
	}
	if result.text != "" {
		message := flash{Text: truncate(result.text, maxFlashText), Bad: result.bad, Kept: result.kept[:min(len(result.kept), maxKept)]}
		text, _ := json.Marshal(message) // strings and ids always marshal
		http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString(text), Path: c.cfg.Prefix + "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, q.Request, to, http.StatusSeeOther)
}

// takeFlash returns the message and deletes its cookie. A request of live.js (X-Live) leaves it for the page that the visitor opens.
func (c *Console) takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil || r.Header.Get("X-Live") != "" {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: c.cfg.Prefix + "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	message := new(flash)
	if err != nil || json.Unmarshal(text, message) != nil || message.Text == "" {
		return nil
	}
	return message
}

// truncate shortens a text to at most most bytes, at a rune boundary, and adds an ellipsis.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
