package account_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const password = "correct horse battery"

// A scene is a service on a database, with a clock that the test moves.
type scene struct {
	*testing.T
	*account.Service
	db      *database.DB
	mu      sync.Mutex
	at      time.Time
	founded []string
}

func (s *scene) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(d)
}

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(s *scene)) {
	t.Helper()
	run := func(t *testing.T, address string) {
		ctx := t.Context()
		jobs, err := anystore.Open(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		db, err := database.Open(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(db.Close(), jobs.Close()); err != nil {
				t.Error(err)
			}
		})
		s := &scene{T: t, db: db, at: time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)}
		s.Service, err = account.Open(ctx, db, account.Config{
			KeyPrefix: "test",
			Now: func() time.Time {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.at
			},
			Founded: func(_ context.Context, _ *database.Tx, organisation string) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.founded = append(s.founded, organisation)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		test(s)
	}
	t.Run("sqlite", func(t *testing.T) { run(t, filepath.Join(t.TempDir(), "jobs.db")) })
	t.Run("postgres", func(t *testing.T) { run(t, pgtest.Database(t)) })
}

// signUp makes an account and returns its session.
func (s *scene) signUp(email string) account.Identity {
	s.Helper()
	if _, err := s.SignUp(s.Context(), account.SignUp{Email: email, Password: password}); err != nil {
		s.Fatal(err)
	}
	return s.signIn(email)
}

func (s *scene) signIn(email string) account.Identity {
	s.Helper()
	token, _, err := s.SignIn(s.Context(), account.SignIn{Email: email, Password: password, From: "test", Agent: "Test/1.0"})
	if err != nil {
		s.Fatal(err)
	}
	id, err := s.OpenSession(s.Context(), token)
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// is checks an error.
func (s *scene) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%v instead of %v", err, want)
	}
}

func TestTheFirstUserIsTheOperatorAndEachUserHasAnOrganisation(t *testing.T) {
	onBoth(t, func(s *scene) {
		ada, ben := s.signUp(" Ada@Example.org"), s.signUp("ben@example.org")
		if !ada.User.Operator || ben.User.Operator {
			s.Errorf("the operators are %v and %v", ada.User.Operator, ben.User.Operator)
		}
		if ada.Role != account.Admin || ada.Organisation == "" || ada.Organisation == ben.Organisation || ada.User.Email != "ada@example.org" {
			s.Errorf("%+v and %+v", ada, ben)
		}
		if len(s.founded) != 2 || s.founded[0] != ada.Organisation {
			s.Errorf("the hook saw %v", s.founded)
		}
		_, err := s.SignUp(s.Context(), account.SignUp{Email: "ADA@example.org", Password: password})
		s.is(err, account.ErrTaken)
	})
}

func TestSignUpRefusesWhatIsNotValid(t *testing.T) {
	onBoth(t, func(s *scene) {
		for _, bad := range []account.SignUp{
			{Email: "ada", Password: password}, {Email: "Ada <ada@example.org>", Password: password}, {Email: "ada@example.org", Password: "short"},
			{Email: "ada@example.org", Password: strings.Repeat("x", 201)}, {Email: "ada@example.org", Password: password, Name: "a\nb"},
			{Email: "ada@example.org", Password: password, Organisation: strings.Repeat("x", 101)},
		} {
			_, err := s.SignUp(s.Context(), bad)
			s.is(err, account.ErrInvalid)
		}
		_, err := s.UserByEmail(s.Context(), "ada@example.org")
		s.is(err, account.ErrNotFound)
	})
}

func TestSignInSaysTheSameForAWrongPasswordAndAnUnknownAddressAndSlowsDown(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.signUp("ada@example.org")
		try := func(email, password string, from any) error {
			_, _, err := s.SignIn(s.Context(), account.SignIn{Email: email, Password: password, From: from})
			return err
		}
		s.is(try("ada@example.org", "wrong password", "a"), account.ErrCredentials)
		s.is(try("eve@example.org", password, "a"), account.ErrCredentials)
		for range 10 {
			_ = try("ada@example.org", "wrong password", "b")
		}
		s.is(try("ada@example.org", password, "c"), account.ErrTooMany)
	})
}

func TestASessionEndsWhenItIsIdleOldOrRevoked(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.signUp("ada@example.org")
		open := func() (string, account.Identity) {
			token, _, err := s.SignIn(s.Context(), account.SignIn{Email: "ada@example.org", Password: password, From: "test"})
			if err != nil {
				s.Fatal(err)
			}
			id, err := s.OpenSession(s.Context(), token)
			s.is(err, nil)
			return token, id
		}
		token, id := open()
		s.is(s.SignOut(s.Context(), id), nil)
		_, err := s.OpenSession(s.Context(), token)
		s.is(err, account.ErrNoIdentity)

		token, _ = open()
		for range 6 { // used every five days
			s.pass(5 * 24 * time.Hour)
			if _, err = s.OpenSession(s.Context(), token); err != nil {
				s.Fatal(err)
			}
		}
		s.pass(24 * time.Hour)
		_, err = s.OpenSession(s.Context(), token)
		s.is(err, account.ErrNoIdentity)

		token, id = open()
		if list, err := s.Sessions(s.Context(), id); err != nil || len(list) != 1 || !list[0].Current {
			s.Errorf("the sessions are %+v, %v", list, err)
		}
		s.pass(8 * 24 * time.Hour)
		_, err = s.OpenSession(s.Context(), token)
		s.is(err, account.ErrNoIdentity)
		_, err = s.OpenSession(s.Context(), "")
		s.is(err, account.ErrNoIdentity)
	})
}

func TestANewPasswordEndsAllOtherSessions(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.signUp("ada@example.org")
		other, this := s.signIn("ada@example.org"), s.signIn("ada@example.org")
		s.is(s.ChangePassword(s.Context(), this, "wrong password", "another long one"), account.ErrCredentials)
		s.is(s.ChangePassword(s.Context(), this, password, "another long one"), nil)
		list, err := s.Sessions(s.Context(), this)
		if err != nil || len(list) != 1 || list[0].ID != this.Session {
			s.Errorf("the sessions are %+v, %v; the other one was %s", list, err, other.Session)
		}
		_, _, err = s.SignIn(s.Context(), account.SignIn{Email: "ada@example.org", Password: password, From: "test"})
		s.is(err, account.ErrCredentials)
	})
}

func TestAFormNeedsTheTokenOfItsSession(t *testing.T) {
	onBoth(t, func(s *scene) {
		one := s.signUp("ada@example.org")
		other := s.signIn("ada@example.org")
		s.is(one.CheckForm(one.FormToken()), nil)
		for _, given := range []string{"", other.FormToken(), one.FormToken() + "x"} {
			s.is(one.CheckForm(given), account.ErrForgery)
		}
		s.is((account.Identity{}).CheckForm(""), account.ErrForgery)
	})
}

func TestAKeyIsShownOnceScopedAndCanBeRevoked(t *testing.T) {
	onBoth(t, func(s *scene) {
		ada, ben := s.signUp("ada@example.org"), s.signUp("ben@example.org")
		k, text, err := s.CreateKey(s.Context(), ada, account.KeyRequest{Name: "laptop", Scopes: []account.Scope{account.Read}, Life: time.Hour})
		if err != nil {
			s.Fatal(err)
		}
		id, err := s.OpenKey(s.Context(), text, "a")
		if err != nil || id.Organisation != ada.Organisation || !id.May(account.Read) || id.May(account.Write) || id.May(account.Operate) || id.Name() != "ada@example.org (API key laptop)" {
			s.Errorf("%+v, %v", id, err)
		}
		if list, err := s.Keys(s.Context(), ada.Organisation); err != nil || len(list) != 1 || list[0].ID != k.ID || list[0].UsedAt.IsZero() || strings.Contains(text, list[0].Name) {
			s.Errorf("the keys are %+v, %v", list, err)
		}
		for _, bad := range []string{"", "test", text + "x", strings.Replace(text, "test_", "live_", 1), strings.ToUpper(text), text[:len(text)-1]} {
			_, err := s.OpenKey(s.Context(), bad, "b")
			s.is(err, account.ErrNoIdentity)
		}
		_, _, err = s.CreateKey(s.Context(), ben, account.KeyRequest{Name: "x", Scopes: []account.Scope{account.Operate}})
		s.is(err, account.ErrInvalid)
		s.is(s.RevokeKey(s.Context(), ben, k.ID), account.ErrNotFound)
		s.pass(2 * time.Hour)
		_, err = s.OpenKey(s.Context(), text, "a")
		s.is(err, account.ErrNoIdentity)
		k, text, err = s.CreateKey(s.Context(), ada, account.KeyRequest{Name: "server"})
		s.is(err, nil)
		s.is(s.RevokeKey(s.Context(), ada, k.ID), nil)
		_, err = s.OpenKey(s.Context(), text, "a")
		s.is(err, account.ErrNoIdentity)
		for range 10 {
			_, err = s.OpenKey(s.Context(), "test_a_b", "c")
			s.is(err, account.ErrNoIdentity)
		}
		_, err = s.OpenKey(s.Context(), "test_a_b", "c")
		s.is(err, account.ErrTooMany)
	})
}

func TestAnInvitationIsForOnePersonOnce(t *testing.T) {
	onBoth(t, func(s *scene) {
		ada, ben, eve := s.signUp("ada@example.org"), s.signUp("ben@example.org"), s.signUp("eve@example.org")
		secret, err := s.Invite(s.Context(), ada, "Ben@example.org", account.Plain)
		s.is(err, nil)
		if i, err := s.Invited(s.Context(), secret); err != nil || i.Email != "ben@example.org" {
			s.Errorf("%+v, %v", i, err)
		}
		_, err = s.Accept(s.Context(), eve, secret)
		s.is(err, account.ErrNotFound)
		organisation, err := s.Accept(s.Context(), ben, secret)
		if err != nil || organisation != ada.Organisation {
			s.Errorf("%s, %v", organisation, err)
		}
		_, err = s.Accept(s.Context(), ben, secret)
		s.is(err, account.ErrNotFound)
		s.is(s.Switch(s.Context(), ben, ada.Organisation), nil)
		s.is(s.Switch(s.Context(), eve, ada.Organisation), account.ErrNotFound)
		ben.Organisation, ben.Role = ada.Organisation, account.Plain
		_, err = s.Invite(s.Context(), ben, "x@example.org", account.Plain)
		s.is(err, account.ErrForbidden)
		secret, err = s.Invite(s.Context(), ada, "eve@example.org", account.Admin)
		s.is(err, nil)
		s.pass(8 * 24 * time.Hour)
		_, err = s.Accept(s.Context(), eve, secret)
		s.is(err, account.ErrNotFound)
		if changes, err := s.Changes(s.Context(), ada.Organisation, 10); err != nil || len(changes) != 4 || changes[1].Action != "joined" {
			s.Errorf("the changes are %+v, %v", changes, err)
		}
	})
}

func TestAMemberWhoIsRemovedLosesKeysAndTheSessionMoves(t *testing.T) {
	onBoth(t, func(s *scene) {
		ada, ben := s.signUp("ada@example.org"), s.signUp("ben@example.org")
		home := ben.Organisation
		secret, _ := s.Invite(s.Context(), ada, "ben@example.org", account.Plain)
		if _, err := s.Accept(s.Context(), ben, secret); err != nil {
			s.Fatal(err)
		}
		ben.Organisation = ada.Organisation
		_, text, err := s.CreateKey(s.Context(), ben, account.KeyRequest{Name: "ben's"})
		s.is(err, nil)
		token, _, _ := s.SignIn(s.Context(), account.SignIn{Email: "ben@example.org", Password: password, From: "test"})
		now, _ := s.OpenSession(s.Context(), token)
		s.is(s.Switch(s.Context(), now, ada.Organisation), nil)
		s.is(s.SetRole(s.Context(), ada, ben.User.ID, ""), nil)
		_, err = s.OpenKey(s.Context(), text, "a")
		s.is(err, account.ErrNoIdentity)
		if now, err = s.OpenSession(s.Context(), token); err != nil || now.Organisation != home || now.Role != account.Admin {
			s.Errorf("%+v, %v", now, err)
		}
	})
}

func TestTwoAdminsWhoLeaveAtTheSameTimeLeaveOne(t *testing.T) {
	onBoth(t, func(s *scene) {
		for round := range 3 {
			ada, ben := s.signUp("ada"+string(rune('a'+round))+"@example.org"), s.signUp("ben"+string(rune('a'+round))+"@example.org")
			secret, _ := s.Invite(s.Context(), ada, ben.User.Email, account.Admin)
			if _, err := s.Accept(s.Context(), ben, secret); err != nil {
				s.Fatal(err)
			}
			ben.Organisation = ada.Organisation
			errs := make(chan error, 2)
			for _, one := range []account.Identity{ada, ben} {
				go func() { errs <- s.SetRole(s.Context(), one, one.User.ID, "") }()
			}
			first, second := <-errs, <-errs
			if (first == nil) == (second == nil) {
				s.Fatalf("%v and %v", first, second)
			}
			if members, err := s.Members(s.Context(), ada.Organisation); err != nil || len(members) != 1 {
				s.Fatalf("%+v, %v", members, err)
			}
		}
	})
}

func TestSignUpsAtTheSameTimeMakeOneOperatorAndOneAccountForEachAddress(t *testing.T) {
	onBoth(t, func(s *scene) {
		var wait sync.WaitGroup
		made := make(chan account.User, 12)
		for n := range 12 {
			wait.Go(func() {
				u, err := s.SignUp(s.Context(), account.SignUp{Email: "user" + string(rune('a'+n/3)) + "@example.org", Password: password})
				if err == nil {
					made <- u
				} else if !errors.Is(err, account.ErrTaken) {
					s.Error(err)
				}
			})
		}
		wait.Wait()
		close(made)
		users, operators := 0, 0
		for u := range made {
			users++
			if u.Operator {
				operators++
			}
		}
		if users != 4 || operators != 1 {
			s.Errorf("%d users and %d operators", users, operators)
		}
	})
}

func TestTheCookieIsForThisSiteOnlyAndRequestsAreIdentifiedByIt(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.signUp("ada@example.org")
		token, _, err := s.SignIn(s.Context(), account.SignIn{Email: "ada@example.org", Password: password, From: "test"})
		s.is(err, nil)
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("X-Forwarded-Proto", "https")
		s.SetCookie(w, r, token)
		c := w.Result().Cookies()[0]
		if !c.HttpOnly || !c.Secure || c.SameSite != 2 || c.Path != "/" {
			s.Errorf("the cookie is %+v", c)
		}
		_, err = s.Visitor(s.Context(), r)
		s.is(err, account.ErrNoIdentity)
		r.AddCookie(c)
		id, err := s.Visitor(s.Context(), r)
		if err != nil || id.User.Email != "ada@example.org" {
			s.Errorf("%+v, %v", id, err)
		}
		_, err = s.Bearer(s.Context(), r)
		s.is(err, account.ErrNoIdentity)
	})
}

func TestANetworkMakesFewAccountsAtOnce(t *testing.T) {
	onBoth(t, func(s *scene) {
		var err error
		for n := range 21 {
			_, err = s.SignUp(s.Context(), account.SignUp{Email: "user" + string(rune('a'+n)) + "@example.org", Password: password, From: "one network"})
		}
		s.is(err, account.ErrTooMany)
		_, err = s.SignUp(s.Context(), account.SignUp{Email: "other@example.org", Password: password, From: "another"})
		s.is(err, nil)
	})
}
