// Package decode decodes the arguments of jobs. The result and the error are those of json.Unmarshal, at a third of its cost for
// most types.
package decode

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// For returns a function that decodes JSON into a zero A as json.Unmarshal does.
//
// The next implementation of encoding/json, in a module of its own until it is part of Go, decodes most types. It has the
// semantics of encoding/json, but it does not know json.Number, and it has methods and tag options that encoding/json ignores:
// types that may show such a difference are decoded by encoding/json. If the fast implementation fails, encoding/json decides, so
// that errors have one text and one type.
func For[A any]() func(text []byte, into *A) error {
	if !alike(reflect.TypeFor[A](), map[reflect.Type]bool{}) {
		return func(text []byte, into *A) error { return json.Unmarshal(text, into) }
	}
	return func(text []byte, into *A) error {
		if jsonv1.Unmarshal(text, into) == nil {
			return nil
		}
		*into = *new(A)
		return json.Unmarshal(text, into)
	}
}

var (
	number          = reflect.TypeFor[json.Number]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// alike reports whether both implementations decode a type alike. seen has the types that are under way or known to be alike.
func alike(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if t == number {
		return false
	}
	if pointer := reflect.PointerTo(t); pointer.Implements(unmarshaler) || pointer.Implements(textUnmarshaler) {
		_, other := pointer.MethodByName("UnmarshalJSONFrom")
		return !other
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return alike(t.Elem(), seen)
	case reflect.Map:
		return alike(t.Key(), seen) && alike(t.Elem(), seen)
	case reflect.Struct:
		for field := range t.Fields() {
			if !alikeTag(field.Tag.Get("json")) || !alike(field.Type, seen) {
				return false
			}
		}
		return true
	case reflect.Interface:
		return t.NumMethod() == 0
	}
	return true
}

// alikeTag reports whether a tag has only a plain name and options that both implementations know and read alike.
func alikeTag(tag string) bool {
	if strings.ContainsAny(tag, `'"\`) {
		return false
	}
	_, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		if option != "" && option != "omitempty" && option != "omitzero" {
			return false
		}
	}
	return true
}
