package api

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/holdfastdev/holdfast"
)

// maxDepth is how deep JSON may be nested. Whoever needs more sends a text.
const maxDepth = 64

// options are the one way in which JSON is written and read here: durations are texts, lists are never null, a member that nobody knows is refused,
// and so is one that is said twice.
var options = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	json.RejectUnknownMembers(true),
	jsontext.PreserveRawStrings(true),
	json.WithMarshalers(json.JoinMarshalers(durationOut, rawOut, written)),
	json.WithUnmarshalers(json.JoinUnmarshalers(durationIn, draftIn, leaseIn, understood)),
)

// lenient lets JSON pass that somebody else answers for: what a store holds was checked when it came in, and is told as it is.
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
			return errors.New(`a duration is a text such as "1m30s"`)
		}
		*to, err = ParseDuration(token.String())
		return err
	})
)

// ParseDuration reads a duration as people and programs write it: 1m30s, 500ms, 36h.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no duration: write it such as 1m30s, 500ms or 36h", text)
	}
	return d, nil
}

// Marshal writes a value as it travels.
func Marshal(value any) ([]byte, error) {
	if own, ok := value.(interface{ appendJSON([]byte) []byte }); ok { // what comes by the thousand is written by hand
		return own.appendJSON(nil), nil
	}
	if own, ok := value.(settlements); ok {
		return appendSettlements(own.Settlements)
	}
	return json.Marshal(value, options, lenient)
}

// MarshalWrite writes a value as it travels, on the way.
func MarshalWrite(to io.Writer, value any) error {
	return json.MarshalWrite(to, value, options, lenient)
}

// MarshalIndent writes a value as it travels, for people: the same value is the same text.
func MarshalIndent(value any) ([]byte, error) {
	return json.Marshal(value, options, lenient, jsontext.WithIndent("  "), json.Deterministic(true))
}

// Unmarshal reads a value. What is wrong with the text is ErrInvalid, and says where; it never repeats what the text says.
func Unmarshal(text []byte, to any) error {
	if err := shallow(text); err != nil {
		return err
	}
	if !quickly(text, to) {
		if err := json.Unmarshal(text, to, options); err != nil {
			return unreadable(err)
		}
	}
	return plain(text, to)
}

// UnmarshalLoose reads an answer: a newer server may say more than this program knows.
func UnmarshalLoose(text []byte, to any) error {
	if quickly(text, to) {
		return nil
	}
	return json.Unmarshal(text, to, options, lenient, json.RejectUnknownMembers(false))
}

// unreadable says what is wrong with JSON in a sentence.
func unreadable(err error) error {
	message := "the JSON cannot be read"
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
			message += fmt.Sprintf(": a JSON %v does not fit", semantic.JSONKind)
		}
	case errors.As(err, &syntactic):
		if at := string(syntactic.JSONPointer); at != "" {
			message += " at " + at
		}
		message += fmt.Sprintf(", byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		message += ": it ends too early"
	}
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: clean(message), Cause: err}
}

// clean keeps a message on one line and short, whatever came in.
func clean(text string) string {
	text = strings.ReplaceAll(text, "\n", "; ") // several problems come on several lines
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

// shallow refuses JSON that is nested too deep, before anybody follows it down.
func shallow(text []byte) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			i = afterText(text, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("the JSON is nested deeper than %d: flatten it, or send it as a text", maxDepth)}
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}
