package api

import (
	"bytes"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain refuses a NUL in any text that was read: no name, key or reason has one, and not every database can hold it. JSON that is passed on as it
// is, such as arguments, may say what it likes; so may what workers tell of attempts, which stores clean.
func plain(text []byte, to any) error {
	if !bytes.Contains(text, []byte(`\u0000`)) {
		return nil
	}
	if hasNUL(reflect.ValueOf(to)) {
		return invalid("a text with a NUL character: leave it out")
	}
	return nil
}

var cleaned = map[reflect.Type]bool{reflect.TypeFor[Outcome](): true, reflect.TypeFor[Settlement](): true, reflect.TypeFor[Note](): true}

func hasNUL(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return strings.IndexByte(v.String(), 0) >= 0
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && hasNUL(v.Elem())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return false
		}
		for i := range v.Len() {
			if hasNUL(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if hasNUL(each.Key()) || hasNUL(each.Value()) {
				return true
			}
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && !cleaned[v.Type()]; i++ {
			if hasNUL(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// maxParam is how long a parameter may be. Cursors are the longest.
const maxParam = 2048

// plainParam refuses a parameter that no name, key or cursor looks like.
func plainParam(p param, text string) error {
	switch {
	case len(text) > maxParam:
		return invalid("%s has %d bytes: the limit is %d", p.name, len(text), maxParam)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return invalid("%s is not UTF-8 without control characters: give it so", p.name)
	}
	return nil
}
