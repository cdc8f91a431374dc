package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

func TestAnInvalidSettlementIsRefused(t *testing.T) {
	failure := &holdfast.Failure{Code: "BROKEN"}
	for problem, s := range map[string]store.Settlement{
		"a settlement to":           {To: holdfast.Processing},
		"only a complete job":       {To: holdfast.Failed, Failure: failure, Result: json.RawMessage("1")},
		"asks for a confirmation":   {To: holdfast.Cancelled, Confirm: true},
		"a failure with a complete": {To: holdfast.Complete, Failure: failure},
		"without a failure record":  {To: holdfast.Failed},
		"without a code":            {To: holdfast.Failed, Failure: &holdfast.Failure{}},
		"charged as":                {To: holdfast.Complete, Charge: store.ChargeCrash},
		"must be charged":           {To: holdfast.Queued},
		"delay":                     {To: holdfast.Queued, Charge: store.ChargeFailure, Delay: -1},
		"took":                      {To: holdfast.Complete, Took: -1},
		"the limit is":              {To: holdfast.Complete, Result: json.RawMessage(`"` + strings.Repeat("x", check.MaxArgs) + `"`)},
		"not valid JSON":            {To: holdfast.Complete, Result: json.RawMessage("{")},
	} {
		if err := s.Check(); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), problem) {
			t.Errorf("wanted a problem about %q, got %v", problem, err)
		}
	}
	sound := store.Settlement{To: holdfast.Queued, Charge: store.ChargeFailure, Failure: failure, Delay: time.Second}
	if err := sound.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckingAValidSettlementAllocatesNothing(t *testing.T) {
	sound := store.Settlement{To: holdfast.Complete, Took: time.Second}
	if n := testing.AllocsPerRun(100, func() { _ = sound.Check() }); n > 0 {
		t.Errorf("checking a sound settlement allocates %v times", n)
	}
}
