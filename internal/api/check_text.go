package api

import (
	"bytes"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// refuseNUL refuses decoded values with a NUL character: no name, key or reason has one, and PostgreSQL cannot store it. Raw JSON, such as arguments, may
// contain it, and so may what workers report about attempts, because stores clean that.
func refuseNUL(text []byte, to any) error {
	if !bytes.Contains(text, []byte(`\u0000`)) {
		return nil
	}
	if hasNUL(reflect.ValueOf(to)) {
		return Invalid("a string contains a NUL character: remove it")
	}
	return nil
}

// cleanedByStore are the types whose strings a store cleans itself.
var cleanedByStore = map[reflect.Type]bool{reflect.TypeFor[Outcome](): true, reflect.TypeFor[Settlement](): true, reflect.TypeFor[Note](): true}

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
		for i := 0; i < v.NumField() && !cleanedByStore[v.Type()]; i++ {
			if hasNUL(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// maxParam is the maximum length of a parameter in bytes. Cursors are the longest.
const maxParam = 2048

// checkParam refuses a parameter value that no name, key or cursor can have.
func checkParam(p param, text string) error {
	switch {
	case len(text) > maxParam:
		return Invalid("%s has %d bytes: the maximum is %d", p.name, len(text), maxParam)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return Invalid("%s contains control characters or is not UTF-8: remove them", p.name)
	}
	return nil
}
