package api

import (
	"bytes"
	stdjson "encoding/json"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// rawOut writes JSON that the store or a caller holds as bytes. If a damaged row holds something else, it is written as a JSON string, so that an operator
// can see it.
var rawOut = json.MarshalToFunc(func(e *jsontext.Encoder, raw stdjson.RawMessage) error {
	if len(raw) == 0 {
		return e.WriteToken(jsontext.Null)
	}
	if e.WriteValue(jsontext.Value(raw)) == nil {
		return nil
	}
	return e.WriteToken(jsontext.String(string(raw)))
})

// exactPrefix begins the object {"$text": "..."}, which carries JSON byte for byte. JSON inside other JSON loses its insignificant whitespace, and a duplicate
// member name is an error. A store keeps arguments byte for byte, so the Go client and the server use this form wherever it makes a difference.
const exactPrefix = `{"$text":`

// Mark returns JSON in a form that arrives byte for byte: as it is, or wrapped in {"$text": "..."}.
func Mark(raw stdjson.RawMessage) stdjson.RawMessage {
	if len(raw) == 0 || unchangedInTransit(raw) {
		return raw
	}
	text, err := jsontext.AppendQuote([]byte(exactPrefix), raw)
	if err != nil { // not UTF-8, so not valid JSON either: no reader accepts it as JSON
		text, _ = jsontext.AppendQuote([]byte(exactPrefix), bytes.ToValidUTF8(raw, []byte("\x00")))
	}
	return append(text, '}')
}

// Unmark is the reverse of Mark.
func Unmark(raw stdjson.RawMessage) stdjson.RawMessage {
	if !bytes.HasPrefix(raw, []byte(exactPrefix)) {
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

// unchangedInTransit reports whether JSON is unchanged after it was embedded in other JSON and read again.
func unchangedInTransit(raw []byte) bool {
	if bytes.HasPrefix(raw, []byte(exactPrefix)) {
		return false
	}
	if compactJSON(raw) {
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

// An Exact value is encoded so that every raw JSON value in it arrives byte for byte, and an empty one arrives empty.
type Exact[T any] struct{ Value T }

var (
	exactOut = json.WithMarshalers(json.JoinMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, raw stdjson.RawMessage) error {
		switch {
		case len(raw) == 0:
			return e.WriteToken(jsontext.Null)
		case string(raw) == "null":
			return e.WriteValue(jsontext.Value(exactPrefix + `"null"}`))
		}
		return e.WriteValue(jsontext.Value(Mark(raw)))
	}), durationOut, formMarshalers))
	exactIn = json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *stdjson.RawMessage) error {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if *to = nil; value.Kind() != 'n' {
			*to = bytes.Clone(Unmark(stdjson.RawMessage(value)))
		}
		return nil
	}), durationIn, formUnmarshalers))
)

// MarshalJSONTo writes Value without a wrapper.
func (x Exact[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, x.Value, exactOut)
}

// UnmarshalJSONFrom reads Value without a wrapper.
func (x *Exact[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return json.UnmarshalDecode(d, &x.Value, exactIn)
}

// Described is the type that the OpenAPI document describes.
func (Exact[T]) Described() reflect.Type { return reflect.TypeFor[T]() }
