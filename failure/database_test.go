package failure

import (
	"errors"
	"fmt"
	"testing"
)

// stateError is an error as drivers of PostgreSQL have it.
type stateError string

func (e stateError) Error() string    { return "the server says no" }
func (e stateError) SQLState() string { return string(e) }

// codeError is an error as drivers of SQLite have it, and others.
type codeError struct {
	code int
	text string
}

func (e codeError) Error() string { return e.text }
func (e codeError) Code() int     { return e.code }

func TestABusyOrUnavailableDatabaseIsRetried(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{stateError("40001"), codeUnavailable}, {stateError("40P01"), codeUnavailable}, {stateError("08006"), codeUnavailable}, {stateError("57P01"), codeUnavailable},
		{stateError("55P03"), codeUnavailable}, {stateError("53300"), codeUnavailable}, {stateError("53100"), codeDiskFull},
		{stateError("23505"), codeUnknown}, {stateError("42601"), codeUnknown},
		{codeError{5, "database is locked (5) (SQLITE_BUSY)"}, codeUnavailable}, {codeError{261, "database is locked (261)"}, codeUnavailable},
		{codeError{6, "database table is locked"}, codeUnavailable}, {codeError{5, "five things went wrong"}, codeUnknown},
		{errors.New("database is locked"), codeUnavailable}, {errors.New("driver: bad connection"), codeUnavailable},
	} {
		class := Rules{}.classify(fmt.Errorf("save the order: %w", c.err))
		if class.Code != c.want {
			t.Errorf("%#v is %s by %s, want %s", c.err, class.Code, class.Rule, c.want)
		}
		if known := builtinByName[class.Code]; c.want == codeUnavailable && (known.Category != "storage" || !known.Retryable) {
			t.Errorf("%s is of category %s, retryable %v", class.Code, known.Category, known.Retryable)
		}
	}
}
