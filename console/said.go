package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// said is what a deed did, for the next page to show once. It travels in a cookie that no script sees.
type said struct {
	Text string        `json:"text"`
	Bad  bool          `json:"bad,omitempty"`
	Kept []holdfast.ID `json:"kept,omitempty"` // jobs that stay selected because it did not work for them
}

// Keeps reports whether a job stays selected.
func (s *said) Keeps(id holdfast.ID) bool {
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
	saidCookie = "holdfast_said"
	mostSaid   = 1200 // bytes of text; more does not fit into a cookie with the rest
	mostKept   = 50
)

// goOn sends the visitor on after a deed, with what there is to say.
func (c *Console) goOn(w http.ResponseWriter, q *ask, was done) {
	to := q.back()
	if was.to != "" {
		to = q.link(was.to)
	}
	if was.text != "" {
		word := said{Text: cut(was.text, mostSaid), Bad: was.bad, Kept: was.kept[:min(len(was.kept), mostKept)]}
		text, _ := json.Marshal(word) // texts and ids always marshal
		http.SetCookie(w, &http.Cookie{Name: saidCookie, Value: base64.RawURLEncoding.EncodeToString(text), Path: c.cfg.Prefix + "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, q.Request, to, http.StatusSeeOther)
}

// heard takes what was said. A page that is fetched again by a script leaves it to the visitor's own.
func (c *Console) heard(w http.ResponseWriter, r *http.Request) *said {
	cookie, err := r.Cookie(saidCookie)
	if err != nil || r.Header.Get("X-Live") != "" {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Path: c.cfg.Prefix + "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	word := new(said)
	if err != nil || json.Unmarshal(text, word) != nil || word.Text == "" {
		return nil
	}
	return word
}

// cut shortens a text without cutting a letter in half.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
