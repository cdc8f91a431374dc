package credit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type scene struct {
	*testing.T
	*credit.Ledger
}

func onBoth(t *testing.T, test func(s *scene)) {
	t.Helper()
	run := func(t *testing.T, address string) {
		jobs, err := anystore.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		db, err := database.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(db.Close(), jobs.Close()); err != nil {
				t.Error(err)
			}
		})
		l, err := credit.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		s := &scene{t, l}
		test(s)
		s.sound(nil)
	}
	t.Run("sqlite", func(t *testing.T) { run(t, filepath.Join(t.TempDir(), "jobs.db")) })
	t.Run("postgres", func(t *testing.T) { run(t, pgtest.Database(t)) })
}

func (s *scene) sound(stateOf func(holdfast.ID) (credit.State, error)) {
	s.Helper()
	if findings, err := s.Check(context.Background(), stateOf); err != nil || len(findings) > 0 {
		s.Errorf("%s, %v", strings.Join(findings, "; "), err)
	}
}

func (s *scene) write(act func(tx *database.Tx) error) error {
	s.Helper()
	return s.DB.Write(s.Context(), act)
}

func (s *scene) grant(owner string, amount int64) {
	s.Helper()
	if err := s.write(func(tx *database.Tx) error {
		_, err := s.Grant(s.Context(), tx, credit.Gift{Owner: owner, Amount: amount})
		return err
	}); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) reserve(owner string, job holdfast.ID, generation int, amount int64) error {
	s.Helper()
	return s.write(func(tx *database.Tx) error {
		return s.Reserve(s.Context(), tx, credit.Reservation{Owner: owner, Job: job, Generation: generation, Amount: amount})
	})
}

func (s *scene) capture(owner string, job holdfast.ID, generation int) error {
	s.Helper()
	return s.write(func(tx *database.Tx) error {
		return s.Capture(s.Context(), tx, credit.Reservation{Owner: owner, Job: job, Generation: generation, Amount: 1})
	})
}

func (s *scene) release(job holdfast.ID, generation int) (amount int64) {
	s.Helper()
	if err := s.write(func(tx *database.Tx) (err error) {
		amount, err = s.Release(s.Context(), tx, job, generation, "test")
		return err
	}); err != nil {
		s.Fatal(err)
	}
	return amount
}

func (s *scene) has(owner string, available, reserved, spent int64) {
	s.Helper()
	if b, err := s.Balance(s.Context(), owner); err != nil || b != (credit.Balance{Available: available, Reserved: reserved, Spent: spent}) {
		s.Errorf("the balance is %+v, %v instead of %d, %d, %d", b, err, available, reserved, spent)
	}
}

func TestCreditsAreReservedThenCapturedOrReleased(t *testing.T) {
	onBoth(t, func(s *scene) {
		a, b := holdfast.NewID(), holdfast.NewID()
		s.grant("org", 3)
		if err := errors.Join(s.reserve("org", a, 1, 1), s.reserve("org", b, 1, 2)); err != nil {
			s.Fatal(err)
		}
		s.has("org", 0, 3, 0)
		short := (*credit.Insufficient)(nil)
		if err := s.reserve("org", holdfast.NewID(), 1, 1); !errors.As(err, &short) || short.Required != 1 || short.Available != 0 {
			s.Errorf("%v", err)
		}
		if err := s.reserve("none", holdfast.NewID(), 1, 1); !errors.As(err, &short) {
			s.Errorf("%v", err)
		}
		for range 2 { // a repetition changes nothing
			if err := s.capture("org", a, 1); err != nil {
				s.Fatal(err)
			}
			s.has("org", 0, 2, 1)
		}
		if n, again := s.release(b, 1), s.release(b, 1); n != 2 || again != 0 {
			s.Errorf("%d and %d were released", n, again)
		}
		s.has("org", 2, 0, 1)
		if list, err := s.Entries(s.Context(), "org", "", 10); err != nil || len(list) != 5 || list[0].Kind != credit.Release || list[0].Available != 2 || list[4].Kind != credit.Grant {
			s.Errorf("%+v, %v", list, err)
		}
	})
}

func TestAManualRetryReservesAgainAndIsReservedOnce(t *testing.T) {
	onBoth(t, func(s *scene) {
		job := holdfast.NewID()
		s.grant("org", 2)
		_ = s.reserve("org", job, 1, 1)
		s.release(job, 1)
		if err := s.reserve("org", job, 2, 1); err != nil {
			s.Fatal(err)
		}
		if err := s.reserve("org", job, 2, 1); !errors.Is(err, credit.ErrReserved) {
			s.Errorf("%v", err)
		}
		if n := s.release(job, 1); n != 0 { // the end of the first generation, handled again
			s.Errorf("%d were released", n)
		}
		s.release(job, 2) // the retry was refused
		if err := errors.Join(s.reserve("org", job, 2, 1), s.capture("org", job, 2)); err != nil {
			s.Fatal(err)
		}
		if err := s.reserve("org", job, 2, 1); !errors.Is(err, credit.ErrReserved) {
			s.Errorf("%v", err)
		}
		s.has("org", 1, 0, 1)
		if n, err := s.SpentOnRetries(s.Context(), "org"); err != nil || n != 1 {
			s.Errorf("%d, %v", n, err)
		}
	})
}

func TestAPictureIsPaidOnceWhoeverRetried(t *testing.T) {
	onBoth(t, func(s *scene) {
		carried, lost := holdfast.NewID(), holdfast.NewID()
		s.grant("org", 2)
		_ = errors.Join(s.reserve("org", carried, 1, 1), s.reserve("org", lost, 1, 1))
		if err := s.capture("org", carried, 2); err != nil { // the retry replaced an automatic one: the reservation continues
			s.Fatal(err)
		}
		s.has("org", 0, 1, 1)
		s.release(lost, 1)
		_ = s.reserve("org", holdfast.NewID(), 1, 1)
		if err := s.capture("org", lost, 2); err != nil { // an operator retried it with the tools of the engine
			s.Fatal(err)
		}
		s.has("org", -1, 1, 2)
	})
}

func TestACancellationAtTheMomentOfTheEndIsGivenBack(t *testing.T) {
	onBoth(t, func(s *scene) {
		job := holdfast.NewID()
		s.grant("org", 1)
		_ = errors.Join(s.reserve("org", job, 1, 1), s.capture("org", job, 1))
		if n := s.release(job, 1); n != 1 {
			s.Errorf("%d", n)
		}
		s.has("org", 1, 0, 1)
		if list, err := s.OfJob(s.Context(), job); err != nil || len(list) != 3 || list[2].Kind != credit.Compensate {
			s.Errorf("%+v, %v", list, err)
		}
	})
}

func TestAGiftForOneThingIsGivenOnceUnderConcurrency(t *testing.T) {
	onBoth(t, func(s *scene) {
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				if err := s.write(func(tx *database.Tx) error {
					_, err := s.Compensate(s.Context(), tx, credit.Gift{Owner: "org", Amount: 5, Once: "promise 1", Note: "late"})
					return err
				}); err != nil {
					s.Error(err)
				}
			})
		}
		wait.Wait()
		s.has("org", 5, 0, 0)
		if err := s.write(func(tx *database.Tx) error {
			_, err := s.Grant(s.Context(), tx, credit.Gift{Owner: "org", Amount: -1})
			return err
		}); err == nil {
			s.Error("a negative grant was made")
		}
	})
}

func TestManyAtTheSameTimeNeverReserveMoreThanThereIs(t *testing.T) {
	onBoth(t, func(s *scene) {
		const most = 20
		s.grant("org", most)
		jobs := make([]holdfast.ID, soak.Pick("shots at the same time", 40, 1000))
		states := map[holdfast.ID]credit.State{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for i := range jobs {
			jobs[i] = holdfast.NewID()
			wait.Go(func() {
				err := s.reserve("org", jobs[i], 1, 1)
				short := (*credit.Insufficient)(nil)
				if errors.As(err, &short) {
					return
				}
				complete := rand.IntN(2) == 0
				if complete {
					err = errors.Join(err, s.capture("org", jobs[i], 1))
				} else {
					s.release(jobs[i], 1)
				}
				if err != nil {
					s.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				states[jobs[i]] = credit.State{Exists: true, Generation: 1, Ended: true, Complete: complete}
			})
		}
		wait.Wait()
		b, err := s.Balance(s.Context(), "org")
		if err != nil || b.Available < 0 || b.Reserved != 0 || b.Available+b.Spent != most {
			s.Errorf("%+v, %v", b, err)
		}
		s.sound(func(id holdfast.ID) (credit.State, error) { return states[id], nil })
	})
}

func TestTheCheckNamesWhatIsWrong(t *testing.T) {
	onBoth(t, func(s *scene) {
		job := holdfast.NewID()
		s.grant("org", 5)
		_ = s.reserve("org", job, 1, 1)
		for _, state := range []credit.State{{}, {Exists: true, Ended: true}, {Exists: true, Ended: true, Complete: true}} {
			if findings, err := s.Check(s.Context(), func(holdfast.ID) (credit.State, error) { return state, nil }); err != nil || len(findings) != 1 || !strings.Contains(findings[0], job.String()) {
				s.Errorf("%+v: %q, %v", state, findings, err)
			}
		}
		for _, damage := range []struct{ do, undo string }{
			{`UPDATE credit_balance SET available = available + 1`, `UPDATE credit_balance SET available = available - 1`},
			{`UPDATE credit_reservation SET state = 'captured'`, `UPDATE credit_reservation SET state = 'open'`},
			{`UPDATE credit_entry SET amount = 2 WHERE kind = 'reserve'`, `UPDATE credit_entry SET amount = 1 WHERE kind = 'reserve'`},
		} {
			exec := func(text string) {
				if err := s.write(func(tx *database.Tx) error { return tx.Exec(s.Context(), text) }); err != nil {
					s.Fatal(err)
				}
			}
			exec(damage.do)
			if findings, err := s.Check(s.Context(), nil); err != nil || len(findings) == 0 {
				s.Errorf("%s was not found: %v", damage.do, err)
			}
			exec(damage.undo)
		}
		if list, err := s.Stale(s.Context(), 0, "", 10); err != nil || len(list) != 1 || list[0].Job != job {
			s.Errorf("%+v, %v", list, err)
		}
		if list, err := s.Stale(s.Context(), time.Hour, "", 10); err != nil || len(list) != 0 {
			s.Errorf("%+v, %v", list, err)
		}
	})
}
