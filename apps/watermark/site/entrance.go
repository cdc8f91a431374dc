package site

import (
	"errors"
	"net/http"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// An entrance is the data of the forms for people who are not signed in.
type entrance struct {
	Email, Problem, To string
	SignUp             bool
}

// target returns where a form leads: a page of this site.
func target(text string) string {
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && !strings.ContainsAny(text, "\\\r\n") {
		return text
	}
	return "/"
}

func (s *Site) signInPage(v *visit) error {
	return s.render(v, http.StatusOK, "sign-in.html", view{Title: "Sign in", Data: entrance{To: target(v.r.Form.Get("to")), SignUp: s.SignUp}})
}

func (s *Site) signIn(v *visit) error {
	form := v.r.PostForm
	token, _, err := s.Accounts.SignIn(v.r.Context(), account.SignIn{Email: form.Get("email"), Password: form.Get("password"), From: limit.Network(v.r.RemoteAddr), Agent: v.r.UserAgent()})
	if errors.Is(err, account.ErrCredentials) || errors.Is(err, account.ErrTooMany) {
		status, line := explain(err)
		return s.render(v, status, "sign-in.html", view{Title: "Sign in", Data: entrance{Email: form.Get("email"), Problem: line, To: target(form.Get("to")), SignUp: s.SignUp}})
	}
	if err != nil {
		return err
	}
	s.Accounts.SetCookie(v.w, v.r, token)
	return v.back(target(form.Get("to")))
}

func (s *Site) signUpPage(v *visit) error {
	if !s.SignUp {
		return &problem{http.StatusForbidden, "Accounts are made by the operator of this service.", nil}
	}
	return s.render(v, http.StatusOK, "sign-up.html", view{Title: "Sign up", Data: entrance{To: target(v.r.Form.Get("to"))}})
}

func (s *Site) signUp(v *visit) error {
	if !s.SignUp {
		return s.signUpPage(v)
	}
	form := v.r.PostForm
	_, err := s.Accounts.SignUp(v.r.Context(), account.SignUp{Email: form.Get("email"), Password: form.Get("password"), Name: form.Get("name")})
	if errors.Is(err, account.ErrInvalid) || errors.Is(err, account.ErrTaken) {
		status, line := explain(err)
		return s.render(v, status, "sign-up.html", view{Title: "Sign up", Data: entrance{Email: form.Get("email"), Problem: line, To: target(form.Get("to"))}})
	}
	if err != nil {
		return err
	}
	return s.signIn(v)
}

func (s *Site) signOut(v *visit) error {
	if err := s.Accounts.SignOut(v.r.Context(), v.Identity); err != nil {
		return err
	}
	s.Accounts.SetCookie(v.w, v.r, "")
	return v.back("/sign-in", "said", "out")
}
