package code_test

import (
	"errors"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

func TestEachCodeIsCompleteAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range code.All() {
		if err := c.Check(); err != nil || seen[c.Name] {
			t.Errorf("%s: %v", c.Name, err)
		}
		seen[c.Name] = true
		if class := code.ClassOf(c.Name); class == "" || class.Retried() != c.Retryable {
			t.Errorf("%s has the class %q", c.Name, class)
		}
	}
	code.Taxonomy()
}

func TestTheClassesOfTheSeedAreDecidedAsItSays(t *testing.T) {
	for class, retried := range map[code.Class]bool{
		code.SocketTimeout: true, code.Connect: true, code.IO: true, code.IllegalArgument: false, code.Security: false, code.IllegalState: false,
	} {
		if class.Retried() != retried {
			t.Errorf("%s", class)
		}
	}
}

func TestTheEngineReadsCodeAndDependencyOfAnError(t *testing.T) {
	for name, want := range map[string]struct {
		to holdfast.State
		on string
	}{
		code.PageTimeout: {holdfast.Queued, "example.org"}, code.PageAddressBlocked: {holdfast.Failed, ""},
		code.BrowserCrashed: {holdfast.Queued, code.Browsers}, code.BrowserUnavailable: {holdfast.Queued, code.Browsers},
	} {
		err := code.New(name, "example.org", errors.New("why"))
		v := failure.Decide(failure.Rules{Taxonomy: code.Taxonomy()}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
		if v.Failure.Code != name || v.To != want.to || v.Dependency != want.on || code.Name(err) != name {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if code.Name(errors.New("of another package")) != code.SystemError || code.Of("POISON").Name != code.SystemWorkerLost || code.Of("NO_SUCH_CODE").Name != code.SystemError {
		t.Error("an unknown code")
	}
}
