package site

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/screenshot/api"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// An entrance is the data of the forms for people who are not signed in.
type entrance struct {
	Email, Problem, To, Secret string
	SignUp                     bool
	Invited                    *account.Invitation
}

// target returns where a form leads: a page of this site.
func target(text string) string {
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && !strings.ContainsAny(text, "\\\r\n") {
		return text
	}
	return "/"
}

func (s *Site) signInPage(v *visit) error {
	data := entrance{To: target(v.r.Form.Get("to")), SignUp: s.SignUp || strings.HasPrefix(v.r.Form.Get("to"), "/join?")}
	return s.render(v, http.StatusOK, "sign-in.html", view{Title: "Sign in", Data: data})
}

func (s *Site) signIn(v *visit) error {
	form := v.r.PostForm
	token, _, err := s.Accounts.SignIn(v.r.Context(), account.SignIn{Email: form.Get("email"), Password: form.Get("password"), From: limit.Network(v.r.RemoteAddr), Agent: v.r.UserAgent()})
	if errors.Is(err, account.ErrCredentials) || errors.Is(err, account.ErrTooMany) {
		refused, status := api.Explain(err)
		return s.render(v, status, "sign-in.html", view{Title: "Sign in", Data: entrance{Email: form.Get("email"), Problem: refused.Message, To: target(form.Get("to")), SignUp: s.SignUp}})
	}
	if err != nil {
		return err
	}
	s.Accounts.SetCookie(v.w, v.r, token)
	return v.back(target(form.Get("to")), "")
}

func (s *Site) signUpPage(v *visit) error {
	data := entrance{To: target(v.r.Form.Get("to"))}
	if err := s.mayEnter(v, &data); err != nil {
		return err
	}
	return s.render(v, http.StatusOK, "sign-up.html", view{Title: "Sign up", Data: data})
}

// mayEnter refuses a sign-up without an invitation while it is closed to others.
func (s *Site) mayEnter(v *visit, e *entrance) error {
	if secret, ok := strings.CutPrefix(e.To, "/join?secret="); ok {
		if i, err := s.Accounts.Invited(v.r.Context(), secret); err == nil {
			e.Invited, e.Email = &i, i.Email
			return nil
		}
	}
	if !s.SignUp {
		return &service.Error{Code: code.Forbidden, Message: "Accounts are made by invitation. Ask an admin of your organisation for one."}
	}
	return nil
}

func (s *Site) signUp(v *visit) error {
	form := v.r.PostForm
	data := entrance{Email: form.Get("email"), To: target(form.Get("to"))}
	if err := s.mayEnter(v, &data); err != nil {
		return err
	}
	_, err := s.Accounts.SignUp(v.r.Context(), account.SignUp{Email: form.Get("email"), Password: form.Get("password"), Name: form.Get("name"), Organisation: form.Get("organisation"), From: limit.Network(v.r.RemoteAddr)})
	if errors.Is(err, account.ErrInvalid) || errors.Is(err, account.ErrTaken) || errors.Is(err, account.ErrTooMany) {
		refused, status := api.Explain(err)
		if errors.Is(err, account.ErrTaken) {
			refused.Message = "There is already an account with this e-mail address. Sign in instead."
		}
		data.Email, data.Problem = form.Get("email"), refused.Message
		return s.render(v, status, "sign-up.html", view{Title: "Sign up", Data: data})
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
	return v.back("/sign-in", "out")
}

func (s *Site) account(v *visit) error {
	sessions, err := s.Accounts.Sessions(v.r.Context(), v.Identity)
	if err != nil {
		return err
	}
	organisations, err := s.Accounts.Organisations(v.r.Context(), v.User.ID)
	if err != nil {
		return err
	}
	data := struct {
		Sessions      []account.Session
		Organisations []account.Organisation
		Current       string
	}{sessions, organisations, v.Organisation}
	return s.render(v, http.StatusOK, "account.html", view{Title: "Account", Nav: "account", Data: data})
}

func (s *Site) changePassword(v *visit) error {
	if err := s.Accounts.ChangePassword(v.r.Context(), v.Identity, v.r.PostForm.Get("old"), v.r.PostForm.Get("password")); err != nil {
		return err
	}
	return v.back("/account", "password")
}

func (s *Site) revokeSession(v *visit) error {
	if err := s.Accounts.Revoke(v.r.Context(), v.Identity, v.r.PathValue("id")); err != nil {
		return err
	}
	return v.back("/account", "session")
}

func (s *Site) found(v *visit) error {
	if _, err := s.Accounts.Found(v.r.Context(), v.User, v.r.PostForm.Get("name")); err != nil {
		return err
	}
	return v.back("/account", "founded")
}

func (s *Site) switchTo(v *visit) error {
	if err := s.Accounts.Switch(v.r.Context(), v.Identity, v.r.PostForm.Get("organisation")); err != nil {
		return err
	}
	return v.back("/", "")
}

// A keyPage is the data of the page of keys.
type keyPage struct {
	Keys  []account.Key
	Fresh string // the text of a new key, shown once
	Base  string
}

func (s *Site) keys(v *visit) error { return s.showKeys(v, http.StatusOK, "") }

func (s *Site) showKeys(v *visit, status int, fresh string) error {
	keys, err := s.Accounts.Keys(v.r.Context(), v.Organisation)
	if err != nil {
		return err
	}
	return s.render(v, status, "keys.html", view{Title: "API keys", Nav: "keys", Data: keyPage{Keys: keys, Fresh: fresh, Base: s.base(v)}})
}

// makeKey answers with the page itself and does not redirect: the text of the key is shown once and is stored nowhere.
func (s *Site) makeKey(v *visit) error {
	form := v.r.PostForm
	r := account.KeyRequest{Name: form.Get("name")}
	for _, scope := range form["scope"] {
		r.Scopes = append(r.Scopes, account.Scope(scope))
	}
	if form.Get("days") != "" {
		d, err := time.ParseDuration(form.Get("days") + "h")
		if err != nil {
			return &service.Error{Code: code.Validation, Message: "Give the number of days, or leave it empty."}
		}
		r.Life = 24 * d
	}
	_, text, err := s.Accounts.CreateKey(v.r.Context(), v.Identity, r)
	if err != nil {
		return err
	}
	return s.showKeys(v, http.StatusCreated, text)
}

func (s *Site) revokeKey(v *visit) error {
	if err := s.Accounts.RevokeKey(v.r.Context(), v.Identity, v.r.PathValue("id")); err != nil {
		return err
	}
	return v.back("/keys", "revoked")
}

const pageEntries = 50

func (s *Site) credits(v *visit) error {
	ctx, ledger := v.r.Context(), s.Service.Ledger()
	balance, err := ledger.Balance(ctx, v.Organisation)
	if err != nil {
		return err
	}
	entries, err := ledger.Entries(ctx, v.Organisation, v.r.URL.Query().Get("cursor"), pageEntries)
	if err != nil {
		return err
	}
	retries, err := ledger.SpentOnRetries(ctx, v.Organisation)
	if err != nil {
		return err
	}
	data := struct {
		credit.Balance
		Entries []credit.Entry
		Retries int64
		Next    string
	}{Balance: balance, Entries: entries, Retries: retries}
	if len(entries) == pageEntries {
		data.Next = entries[pageEntries-1].ID
	}
	return s.render(v, http.StatusOK, "credits.html", view{Title: "Credits", Nav: "credits", Data: data})
}

// A teamPage is the data of the page of members.
type teamPage struct {
	Members []account.Member
	Changes []account.Change
	Admin   bool
	Me      string
	Link    string // of a new invitation, shown once
	Email   string
	Budgets []service.Budget
	Names   map[string]string // e-mail addresses of members by id
}

func (s *Site) team(v *visit) error { return s.showTeam(v, http.StatusOK, teamPage{}) }

func (s *Site) showTeam(v *visit, status int, data teamPage) (err error) {
	if data.Members, err = s.Accounts.Members(v.r.Context(), v.Organisation); err != nil {
		return err
	}
	if data.Changes, err = s.Accounts.Changes(v.r.Context(), v.Organisation, 30); err != nil {
		return err
	}
	if data.Budgets, err = s.Service.Budgets(v.r.Context(), v.Organisation); err != nil {
		return err
	}
	data.Names = map[string]string{}
	for _, m := range data.Members {
		data.Names[m.User.ID] = m.User.Email
	}
	data.Admin, data.Me = v.Role == account.Admin, v.User.ID
	return s.render(v, status, "team.html", view{Title: "Team", Nav: "team", Data: data})
}

func (s *Site) setBudget(v *visit) error {
	if v.Role != account.Admin {
		return account.ErrForbidden
	}
	form := v.r.PostForm
	b := service.Budget{User: form.Get("user"), Priority: service.Priority(form.Get("priority"))}
	cost := 0
	for name, into := range map[string]*int{"daily": &b.Daily, "monthly": &b.Monthly, "cost": &cost} {
		if text := strings.TrimSpace(form.Get(name)); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return &service.Error{Code: code.Validation, Message: name + ": give a whole number, or leave it empty"}
			}
			*into = n
		}
	}
	b.Cost = int64(cost)
	if err := s.Service.SetBudget(v.r.Context(), v.Organisation, b); err != nil {
		return err
	}
	return v.back("/team", "budget")
}

func (s *Site) invite(v *visit) error {
	email := v.r.PostForm.Get("email")
	secret, err := s.Accounts.Invite(v.r.Context(), v.Identity, email, account.Role(v.r.PostForm.Get("role")))
	if err != nil {
		return err
	}
	return s.showTeam(v, http.StatusCreated, teamPage{Link: s.base(v) + "/join?secret=" + secret, Email: email})
}

func (s *Site) setRole(v *visit) error {
	if err := s.Accounts.SetRole(v.r.Context(), v.Identity, v.r.PathValue("id"), account.Role(v.r.PostForm.Get("role"))); err != nil {
		return err
	}
	return v.back("/team", "role")
}

func (s *Site) joinPage(v *visit) error {
	secret := v.r.URL.Query().Get("secret")
	i, err := s.Accounts.Invited(v.r.Context(), secret)
	if errors.Is(err, account.ErrNotFound) {
		return &service.Error{Code: code.NotFound, Message: "This invitation is used or has expired. Ask for a new one."}
	}
	if err != nil {
		return err
	}
	return s.render(v, http.StatusOK, "join.html", view{Title: "Join", Data: entrance{Invited: &i, Email: v.User.Email, Secret: secret}})
}

func (s *Site) join(v *visit) error {
	organisation, err := s.Accounts.Accept(v.r.Context(), v.Identity, v.r.PostForm.Get("secret"))
	if errors.Is(err, account.ErrNotFound) {
		return &service.Error{Code: code.NotFound, Message: "This invitation is used, has expired, or is for another e-mail address."}
	}
	if err != nil {
		return err
	}
	if err := s.Accounts.Switch(v.r.Context(), v.Identity, organisation); err != nil {
		return err
	}
	return v.back("/", "joined")
}
