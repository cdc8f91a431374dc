package server

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
)

func TestAVitalRequestWaitsSecondsForItsTurnAndOthersAreRefusedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(4)
		for range 4 {
			if err := a.enter(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
		vital := make(chan error, 2)
		for range 2 { // the second one comes when the first has been waiting for long
			go func() { vital <- a.enter(t.Context(), true) }()
			time.Sleep(time.Second)
		}
		if a.overloaded(true) {
			t.Error("a vital request is refused before its body is read although few are waiting")
		}
		begun := time.Now()
		if err := a.enter(t.Context(), false); !errors.Is(err, holdfast.ErrUnavailable) || time.Since(begun) > normalWait {
			t.Errorf("an ordinary request: %v after %v", err, time.Since(begun))
		}
		time.Sleep(time.Second)
		a.leave(true)
		a.leave(true)
		for range 2 {
			if err := <-vital; err != nil {
				t.Errorf("a vital request was refused: %v", err)
			}
		}
		begun = time.Now()
		if err := a.enter(t.Context(), true); !errors.Is(err, holdfast.ErrUnavailable) || time.Since(begun) != vitalWait {
			t.Errorf("a vital request without a turn: %v after %v", err, time.Since(begun))
		}
	})
}
