package check_test

import (
	"errors"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

func TestTextWithControlCharactersIsRefusedAsAName(t *testing.T) {
	for _, bad := range []string{"a\x00", "a\n", "a\x1b[2J", "\x7f", "a\u009b", "a\u0085b", "ad\u202ea", "\u2066a", "a\u200f", "\u061c", "a\u2028", "a\xff", "é\x01"} {
		if check.PlainText(bad) {
			t.Errorf("%q is taken for plain", bad)
		}
		for what, draft := range map[string]holdfast.Draft{
			"owner": {Kind: "k", Owner: bad}, "tag": {Kind: "k", Tags: []string{bad}}, "unique key": {Kind: "k", UniqueKey: bad}, "idempotency key": {Kind: "k", IdempotencyKey: bad}, "kind": {Kind: bad}, "queue": {Kind: "k", Queue: bad},
		} {
			if err := draft.Prepare(); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%s %q: %v", what, bad, err)
			}
		}
	}
	for _, good := range []string{"", "ada", "Ædå 漢字", "שלום", "أحمد", "emoji 👩‍💻", "a b"} {
		if !check.PlainText(good) {
			t.Errorf("%q is refused", good)
		}
	}
	draft := holdfast.Draft{Kind: "k", Args: []byte("\"\u202e\u009b\"")}
	if err := draft.Prepare(); err != nil {
		t.Errorf("arguments may hold anything: %v", err)
	}
}
