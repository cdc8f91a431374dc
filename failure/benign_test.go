package failure

import "testing"

func TestABenignFailureFormsAnErrorGroupOnlyWhenThePolicySaysSo(t *testing.T) {
	yes, no := true, false
	err := Benign(NeverRetry(&HTTPError{Status: 404, Err: errPlain}))
	for name, c := range map[string]struct {
		policy Policy
		err    error
		groups bool
	}{
		"nothing set":            {Policy{}, err, false},
		"asked for":              {Policy{GroupBenign: &yes}, err, true},
		"asked for on the code":  {Policy{Codes: map[string]Override{"NOT_FOUND": {GroupBenign: &yes}}}, err, true},
		"not on this code":       {Policy{GroupBenign: &yes, Codes: map[string]Override{"NOT_FOUND": {GroupBenign: &no}}}, err, false},
		"not benign":             {Policy{}, NeverRetry(errPlain), true},
		"benign and tried again": {Policy{}, Benign(errPlain), false},
	} {
		v := Decide(Rules{Policy: c.policy}, lease(0, 0), Outcome{Err: c.err})
		if got := v.Failure.Fingerprint != ""; got != c.groups || v.Alarm && v.Failure.Benign {
			t.Errorf("%s: in an error group %v, want %v: %+v", name, got, c.groups, v)
		}
	}
}
