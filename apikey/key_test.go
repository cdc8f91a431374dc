package apikey

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestAKeyOpensWithItsOwnSecretAndNoOther(t *testing.T) {
	k, text := New(Request{Name: "ci", Scope: Worker}, noon)
	id, secret, err := Parse(text)
	if err != nil || id != k.ID || !k.Accepts(secret, noon) || k.Accepts(secret+"0", noon) || k.Accepts("", noon) || k.Accepts(k.Hash, noon) {
		t.Error(id, err)
	}
	other, otherText := New(Request{Name: "ci", Scope: Worker}, noon)
	if _, otherSecret, _ := Parse(otherText); k.Accepts(otherSecret, noon) || other.ID == k.ID {
		t.Error("two keys are one")
	}
	if strings.Contains(k.Hash, secret) || k.Redacted().Hash != "" || k.Redacted().Matches(secret) {
		t.Error("the secret is kept, or what is shown opens")
	}
}

func TestAMisspelledKeyIsDetectedWithoutALookup(t *testing.T) {
	_, text := New(Request{Name: "ci", Scope: Worker}, noon)
	for i := range len(text) {
		for _, wrong := range []string{text[:i], text[i+1:], text[:i] + "x" + text[i+1:], text[:i] + "x" + text[i:]} {
			if _, _, err := Parse(wrong); !errors.Is(err, ErrMalformed) {
				t.Errorf("%q passes for a key", wrong)
			}
		}
	}
	for _, wrong := range []string{"", "_", "hf", "hf_", "___", strings.Repeat("hf_", 100), text + text, " " + text, text + "\n", strings.ToUpper(text)} {
		if _, _, err := Parse(wrong); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q passes for a key", wrong)
		}
	}
}

func TestAKeyIsGoodUntilItExpiresOrIsRevoked(t *testing.T) {
	k, _ := New(Request{Name: "ci", Scope: Worker, ExpireIn: time.Hour}, noon)
	if !k.Valid(noon) || !k.Valid(noon.Add(time.Hour-1)) || k.Valid(noon.Add(time.Hour)) {
		t.Error("a key that lives for an hour:", k.ExpireAt)
	}
	forever, _ := New(Request{Name: "ci", Scope: Worker}, noon)
	if !forever.Valid(noon.AddDate(100, 0, 0)) {
		t.Error("a key without an end has ended")
	}
	if forever.RevokedAt = noon; forever.Valid(noon.Add(-time.Hour)) {
		t.Error("a key that was revoked is good")
	}
}

func TestWhatAScopeAllows(t *testing.T) {
	for scope, allowed := range map[Scope]string{Viewer: "viewer", Worker: "worker", Operator: "viewer operator", Admin: "viewer worker operator admin"} {
		for _, asked := range []Scope{Viewer, Worker, Operator, Admin} {
			if scope.Allows(asked) != strings.Contains(allowed, string(asked)) {
				t.Errorf("%s allows %s: %v", scope, asked, scope.Allows(asked))
			}
		}
		if !scope.Allows("") || scope != Admin && scope.Allows("nonsense") {
			t.Errorf("%s and nonsense", scope)
		}
	}
	if Scope("").Allows(Viewer) || Scope("root").Allows(Viewer) {
		t.Error("no scope at all allows to look")
	}
}

func TestABadOrderIsRefusedWithEveryProblem(t *testing.T) {
	err := Request{Name: "a\nb", Scope: "root", Owner: strings.Repeat("o", 256), ExpireIn: -1}.Check()
	for _, word := range []string{"the name", "scope", "owner", "expires"} {
		if err == nil || !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), word) {
			t.Errorf("nothing is said about %s: %v", word, err)
		}
	}
	for _, bad := range []Request{{}, {Name: "x"}, {Name: "x", Scope: Worker, Owner: "bob"}, {Name: "x", Scope: Admin, Owner: "bob"}, {Name: strings.Repeat("n", 256), Scope: Viewer}, {Name: "x", Scope: Viewer, ExpireIn: check.MaxDelay + 1}} {
		if bad.Check() == nil {
			t.Errorf("%+v is in order", bad)
		}
	}
	if err := (Request{Name: "x", Scope: Operator, Owner: "bob", ExpireIn: time.Hour}).Check(); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	_, text := New(Request{Name: "ci", Scope: Worker}, noon)
	for _, seed := range []string{text, "", "hf_a_b_c", "hf___00000000", text[:20]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, err := Parse(text)
		if err == nil && (id == "" || secret == "" || "hf_"+id+"_"+secret+"_"+checksum("hf_"+id+"_"+secret) != text) {
			t.Errorf("%q is taken for %q and %q", text, id, secret)
		}
	})
}

func TestAKeyIsDecodedAsItWasEncoded(t *testing.T) {
	k, _ := New(Request{Name: "ci", Scope: Viewer, Owner: "bob", ExpireIn: time.Hour}, noon)
	text, err := json.Marshal(k)
	var again Key
	if err != nil || json.Unmarshal(text, &again) != nil || !reflect.DeepEqual(again, k) {
		t.Errorf("%s %+v", text, again)
	}
}
