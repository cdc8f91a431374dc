package api

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/holdfastdev/holdfast"
)

// maxDepth is how deep JSON may be nested. Deeper data can be sent as a string.
const maxDepth = 64

// options define the one JSON dialect of the API: durations are strings, lists are never null, unknown members are refused, and so are members that
// occur twice.
var options = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.RejectUnknownMembers(true),
	jsontext.PreserveRawStrings(true),
	json.WithMarshalers(json.JoinMarshalers(durationOut, rawOut, formMarshalers)),
	json.WithUnmarshalers(json.JoinUnmarshalers(durationIn, formUnmarshalers)),
)

// lenient accepts JSON that the store holds: it was validated when it was enqueued, and is returned as it is.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

var (
	durationOut = json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
		return e.WriteToken(jsontext.String(d.String()))
	})
	durationIn = json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *time.Duration) error {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() != '"' {
			return errors.New(`a duration is a string such as "1m30s"`)
		}
		*to, err = ParseDuration(token.String())
		return err
	})
)

// ParseDuration reads a duration such as 1m30s, 500ms or 36h.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a duration: use a form such as 1m30s, 500ms or 36h", text)
	}
	return d, nil
}

// Marshal encodes a value in the JSON dialect of the API.
func Marshal(value any) ([]byte, error) {
	if own, ok := value.(interface{ appendJSON([]byte) []byte }); ok { // lists that may have thousands of entries have their own encoders
		return own.appendJSON(nil), nil
	}
	if own, ok := value.(settlements); ok {
		return appendSettlements(own.Settlements)
	}
	return json.Marshal(value, options, lenient)
}

// MarshalWrite is Marshal to a writer.
func MarshalWrite(to io.Writer, value any) error {
	return json.MarshalWrite(to, value, options, lenient)
}

// MarshalIndent encodes a value for people to read, with indentation. Equal values give equal text.
func MarshalIndent(value any) ([]byte, error) {
	return json.Marshal(value, options, lenient, jsontext.WithIndent("  "), json.Deterministic(true))
}

// Unmarshal decodes a request. Bad JSON is ErrInvalid with the position of the mistake; the message never repeats the content.
func Unmarshal(text []byte, to any) error {
	presize(to, len(text))
	if drafts, ok := to.(*[]holdfast.Draft); ok {
		if read, ok := readDrafts(text, (*drafts)[:0]); ok {
			*drafts = read
			return nil
		}
	}
	if err := checkDepth(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, to, options); err != nil {
		return unreadable(err)
	}
	return refuseNUL(text, to)
}

// entryBytes is about the size of an entry of a long list as text. In memory an entry is not much larger.
const entryBytes = 300

// presize gives a long list the capacity that the size of its text suggests. Without it a list of thousands is copied several times while it grows.
func presize(to any, size int) {
	switch n := min(size/entryBytes, MostDrafts); to := to.(type) {
	case *[]holdfast.Draft:
		*to = slices.Grow(*to, n)
	case *settlements:
		to.Settlements = slices.Grow(to.Settlements, n)
	case *ClaimOut:
		to.Leases = slices.Grow(to.Leases, n)
	}
}

// UnmarshalLoose decodes an answer. It ignores unknown members, because a newer server may send more than this program knows.
func UnmarshalLoose(text []byte, to any) error {
	presize(to, len(text))
	return json.Unmarshal(text, to, options, lenient, json.RejectUnknownMembers(false))
}

// unreadable turns a JSON error into an ErrInvalid with a readable message.
func unreadable(err error) error {
	message := "the JSON is not valid"
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		if at := string(semantic.JSONPointer); at != "" {
			message += " at " + at
		}
		if semantic.Err != nil {
			message += ": " + semantic.Err.Error()
		} else if semantic.GoType != nil {
			message += fmt.Sprintf(": a JSON %v is not allowed here", semantic.JSONKind)
		}
	case errors.As(err, &syntactic):
		if at := string(syntactic.JSONPointer); at != "" {
			message += " at " + at
		}
		message += fmt.Sprintf(", byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		message += ": it ends too early"
	}
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: Clean(message), Cause: err}
}

// Clean makes a message safe to show: one line, no control characters, at most 400 bytes.
func Clean(text string) string {
	text = strings.ReplaceAll(text, "\n", "; ") // the library joins several problems with line breaks
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	if len(text) > 400 {
		text = text[:400] + "..."
	}
	return strings.ToValidUTF8(text, "")
}

// checkDepth refuses JSON that is nested too deep, before a recursive parser reads it.
func checkDepth(text []byte) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			i = afterText(text, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("the JSON is nested deeper than %d: flatten it, or send it as a string", maxDepth)}
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}
