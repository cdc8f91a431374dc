package failure_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/failure"
)

func TestCredentialsInArgumentsAreHiddenAndNothingElseIs(t *testing.T) {
	for value, want := range map[string]string{
		`{"to":"ada","n":1.00,"path":"/srv/in/a.csv"}`:                  `{"n":1.00,"path":"/srv/in/a.csv","to":"ada"}`,
		`{"password":"hunter2","api_key":7,"secrets":{"a":"b"}}`:        `{"api_key":"***","password":"***","secrets":"***"}`,
		`["see https://ada:pw@host/x?key=abc&n=1"]`:                     `["see https://***@host/x?key=***&n=1"]`,
		`{"headers":{"Authorization":"Bearer abc","Accept":"a<b"}}`:     `{"headers":{"Accept":"a<b","Authorization":"***"}}`,
		`"-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"`: `"***"`,
		`12.50`: `12.50`,
		`{`:     `"***"`,
	} {
		if got := string(failure.Redact([]byte(value))); got != want {
			t.Errorf("%s is shown as %s, want %s", value, got, want)
		}
	}
}
