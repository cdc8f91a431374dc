package previous

import (
	"strings"
	"testing"
)

func TestACommitThatIsMissingIsNamedWithTheWayToGetIt(t *testing.T) {
	missing := strings.Repeat("0123456789", 4)
	_, err := build(missing)
	if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Fatalf("error: %v", err)
	}
}

func TestThePinnedCommitIsInTheHistory(t *testing.T) {
	if len(Commit()) != 40 {
		t.Fatalf("COMMIT says %q, which is not the full name of a commit", Commit())
	}
	top, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkHistory(top, Commit()); err != nil {
		t.Fatal(err)
	}
}
