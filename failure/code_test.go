package failure

import (
	"strings"
	"testing"
)

func TestEveryBuiltInCodeIsCompleteAndNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, code := range builtin {
		if err := code.Check(); err != nil {
			t.Error(err)
		}
		if seen[code.Name] {
			t.Errorf("%s is there twice", code.Name)
		}
		seen[code.Name] = true
	}
}

func TestEveryCodeOfTheSharedSetIsBuiltIn(t *testing.T) {
	final := map[string]bool{"TOO_LARGE": true, "GW_4XX": true}
	names := strings.Fields(`TOO_LARGE GW_4XX GW_5XX GW_TIMEOUT IO_ERROR NOT_READY UNKNOWN`)
	for _, name := range names {
		code, ok := (*Taxonomy)(nil).Code(name)
		if !ok || code.Retryable == final[name] {
			t.Errorf("%s: found %v, retryable %v", name, ok, code.Retryable)
		}
	}
	for _, name := range strings.Fields(`HTTP_5XX DISK_FULL SYSTEM_PANIC`) {
		if _, ok := (&Taxonomy{}).Code(name); !ok {
			t.Errorf("the zero taxonomy does not know %s", name)
		}
	}
}

func TestEveryCodeTheRulesCanGiveIsBuiltIn(t *testing.T) {
	given := []string{
		codeUnknown, codeTimeout, codePanic, codeSystem, codeExited, codeResult, codeLost, codePoison, codeExpired,
		codeUnreadable, codeUnknownKind, codeRateLimited, codeDown, codeNetwork, codeBadRequest, codeInvalidInput,
		codeUnauthorized, codeAuthDenied, codeNotFound, codeTooLarge, codeHTTPTimeout, codeHTTP4XX, codeHTTP5XX,
		codeExitCode, codeKilled, codeOutOfMemory, codeDiskFull, codeIO, codeDenied, codeMissing, codeUnavailable,
	}
	for _, code := range statusCodes {
		given = append(given, code)
	}
	for _, name := range given {
		if _, ok := builtinByName[name]; !ok {
			t.Errorf("%s is given by a rule and is not in the taxonomy", name)
		}
	}
}

func TestAnApplicationsCodeJoinsOrReplacesTheBuiltInOnes(t *testing.T) {
	own := Code{"INVALID_MAPPING", "input", final, BlameUser, 422, "The mapping does not fit.", "Correct the mapping.", false}
	replaced := Code{"IO_ERROR", "storage", final, BlameUs, 500, "The disk is broken.", "Replace the disk.", false}
	taxonomy, err := NewTaxonomy(own, replaced)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := taxonomy.Code("INVALID_MAPPING"); !ok || got != own {
		t.Errorf("own code: %v %v", got, ok)
	}
	if got, _ := taxonomy.Code("IO_ERROR"); got != replaced {
		t.Errorf("replaced code: %v", got)
	}
	codes := taxonomy.Codes()
	if len(codes) != len(builtin)+1 || codes[len(codes)-1] != own {
		t.Errorf("%d codes, the last is %v", len(codes), codes[len(codes)-1])
	}
	if original, _ := (*Taxonomy)(nil).Code("IO_ERROR"); original == replaced {
		t.Error("one application's code reached the built-in set")
	}
}

func TestABadTaxonomyIsRefusedWhole(t *testing.T) {
	good := Code{"FINE", "input", final, BlameUser, 400, "Fine.", "Nothing.", false}
	bad := Code{Name: "not upper", Category: "misc", Blame: "them", HTTPStatus: 200, Message: "two\nlines"}
	_, err := NewTaxonomy(good, good, bad)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{`"FINE" is given twice`, "A-Z, 0-9", `category "misc"`, `blame "them"`, "status 200", "the message", "the remedy"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not mention %s:\n%v", part, err)
		}
	}
}

func TestACodeWithoutAStatusGetsThatOfItsBlame(t *testing.T) {
	for blame, want := range map[Blame]int{BlameUser: 422, BlameDependency: 502, BlameUs: 500} {
		taxonomy, err := NewTaxonomy(Code{Name: "FINE", Category: "input", Blame: blame, Message: "Fine.", Remedy: "Nothing."})
		if err != nil {
			t.Errorf("blame %s: %v", blame, err)
			continue
		}
		if code, _ := taxonomy.Code("FINE"); code.HTTPStatus != want {
			t.Errorf("blame %s: status %d, want %d", blame, code.HTTPStatus, want)
		}
		if codes := taxonomy.Own(); codes[0].HTTPStatus != want {
			t.Errorf("blame %s: own code has status %d, want %d", blame, codes[0].HTTPStatus, want)
		}
	}
}

func TestCodesHandedOutCannotChangeTheTaxonomy(t *testing.T) {
	(*Taxonomy)(nil).Codes()[0].Message = "changed"
	if builtin[0].Message == "changed" {
		t.Error("a caller changed the built-in set")
	}
}
