package api

import (
	"bytes"
	stdjson "encoding/json"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// rawOut writes JSON that somebody else wrote. What is none, because a row was damaged, is written as a text: whoever looks at it must see it.
var rawOut = json.MarshalToFunc(func(e *jsontext.Encoder, raw stdjson.RawMessage) error {
	if len(raw) == 0 {
		return e.WriteToken(jsontext.Null)
	}
	if e.WriteValue(jsontext.Value(raw)) == nil {
		return nil
	}
	return e.WriteToken(jsontext.String(string(raw)))
})

type rawJSON = stdjson.RawMessage

// letter begins an object that stands for JSON to the letter: {"$text": "..."}. JSON within JSON loses its spaces and may not say a name
// twice; a store keeps arguments to the letter, so between Go programs they travel so where it makes a difference.
const letter = `{"$text":`

// Mark makes JSON into what survives a journey to the letter.
func Mark(raw stdjson.RawMessage) stdjson.RawMessage {
	if len(raw) == 0 || survives(raw) {
		return raw
	}
	text, err := jsontext.AppendQuote([]byte(letter), raw)
	if err != nil { // it is not UTF-8 in the first place, and nobody will take it for JSON
		text, _ = jsontext.AppendQuote([]byte(letter), bytes.ToValidUTF8(raw, []byte("\x00")))
	}
	return append(text, '}')
}

// Unmark undoes Mark.
func Unmark(raw stdjson.RawMessage) stdjson.RawMessage {
	if !bytes.HasPrefix(raw, []byte(letter)) {
		return raw
	}
	var marked struct {
		Text string `json:"$text"`
	}
	if json.Unmarshal(raw, &marked) != nil {
		return raw
	}
	return stdjson.RawMessage(marked.Text)
}

// survives reports whether JSON stays as it is when it travels within other JSON.
func survives(raw []byte) bool {
	if bytes.HasPrefix(raw, []byte(letter)) {
		return false
	}
	if tidy(raw) {
		return true
	}
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = afterText(raw, i) - 1
		case ' ', '\n', '\t', '\r':
			return false
		case '{', '[':
			if depth++; depth > maxDepth/2 {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return jsontext.Value(raw).IsValid()
}

// An Exact value travels to the letter: every piece of JSON in it arrives as it was sent, and what was nothing is nothing.
type Exact[T any] struct{ Value T }

var (
	exactOut = json.WithMarshalers(json.JoinMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, raw stdjson.RawMessage) error {
		switch {
		case len(raw) == 0:
			return e.WriteToken(jsontext.Null)
		case string(raw) == "null":
			return e.WriteValue(jsontext.Value(letter + `"null"}`))
		}
		return e.WriteValue(jsontext.Value(Mark(raw)))
	}), durationOut, written))
	exactIn = json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *stdjson.RawMessage) error {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if *to = nil; value.Kind() != 'n' {
			*to = bytes.Clone(Unmark(stdjson.RawMessage(value)))
		}
		return nil
	}), durationIn, understood))
)

// MarshalJSONTo writes the value alone.
func (x Exact[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, x.Value, exactOut)
}

// UnmarshalJSONFrom reads the value alone.
func (x *Exact[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return json.UnmarshalDecode(d, &x.Value, exactIn)
}

// Described is what stands in the document.
func (Exact[T]) Described() reflect.Type { return reflect.TypeFor[T]() }
