package api

import (
	"encoding"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// A param is a field of a request that comes from the path, the query or a header.
type param struct {
	index []int
	where string // path, query or header
	name  string
	max   int64 // maximum of a number; 0: no maximum
}

// maxPage is the maximum of the parameter limit, unless its field has the tag max.
const maxPage = 200

// A requestLayout describes how a request type is encoded: which fields are parameters, and which one is the body.
type requestLayout struct {
	params []param
	body   []int // index of the body field; nil when there is none
}

var requestLayouts sync.Map // reflect.Type → *requestLayout

// layoutOf returns the layout of a request type. It is computed once for each type, and safe for concurrent use.
func layoutOf(t reflect.Type) *requestLayout {
	if known, ok := requestLayouts.Load(t); ok {
		return known.(*requestLayout)
	}
	s := &requestLayout{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if f.Name == "Body" {
			s.body = f.Index
			continue
		}
		for _, where := range []string{"path", "query", "header"} {
			if name, ok := f.Tag.Lookup(where); ok {
				s.params = append(s.params, param{f.Index, where, name, maxOf(f, name)})
			}
		}
	}
	requestLayouts.Store(t, s)
	return s
}

// maxOf is the maximum of a numeric parameter.
func maxOf(f reflect.StructField, name string) int64 {
	if limit, err := strconv.ParseInt(f.Tag.Get("max"), 10, 64); err == nil {
		return limit
	}
	if name == "limit" {
		return maxPage
	}
	return 0
}

// HasBody reports whether requests of this type have a body. in is a pointer to the request.
func HasBody(in any) bool { return layoutOf(reflect.TypeOf(in).Elem()).body != nil }

// Decode reads the parameters and the body of a request into in, which is a pointer. Every mistake is ErrInvalid. Unknown query parameters are refused: a
// misspelled filter must not select everything.
func Decode(r *http.Request, body []byte, in any) error {
	v := reflect.ValueOf(in).Elem()
	s := layoutOf(v.Type())
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Invalid("the query cannot be read: percent-encode special characters")
	}
	var known []string
	for _, p := range s.params {
		var given []string
		switch p.where {
		case "path":
			given = []string{r.PathValue(p.name)}
		case "query":
			known, given = append(known, p.name), query[p.name]
		case "header":
			given = r.Header.Values(p.name)
		}
		if len(given) == 0 {
			continue
		}
		if err := setField(v.FieldByIndex(p.index), p, given); err != nil {
			return err
		}
	}
	for name := range query {
		if !slices.Contains(known, name) {
			return Invalid("unknown parameter %.60q: this route has %s", name, orNone(known))
		}
	}
	if s.body == nil {
		if len(body) > 0 {
			return Invalid("this route takes no body: leave it out")
		}
		return nil
	}
	if len(body) == 0 {
		body = []byte("{}")
		if kind := v.FieldByIndex(s.body).Kind(); kind == reflect.Slice {
			body = []byte("[]")
		}
	}
	return Unmarshal(body, v.FieldByIndex(s.body).Addr().Interface())
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// Invalid returns an error that wraps holdfast.ErrInvalid.
func Invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: Clean(fmt.Sprintf(format, args...))}
}

// setField sets one field from the values that the request gives for it.
func setField(to reflect.Value, p param, given []string) error {
	for _, text := range given {
		if err := checkParam(p, text); err != nil {
			return err
		}
	}
	if to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.String {
		to.Set(reflect.ValueOf(given).Convert(to.Type()))
		return nil
	}
	if len(given) > 1 {
		return Invalid("%s is given %d times: give it once", p.name, len(given))
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	if err := parse(to, given[0]); err != nil {
		return Invalid("%s: %v", p.name, err)
	}
	if p.max > 0 && to.CanInt() && (to.Int() < 0 || to.Int() > p.max) {
		return Invalid("%s: %d is out of range; give at most %d", p.name, to.Int(), p.max)
	}
	return nil
}

func parse(to reflect.Value, text string) (err error) {
	switch typed := to.Addr().Interface().(type) {
	case *time.Duration:
		if *typed, err = ParseDuration(text); err == nil && (*typed < 0 || *typed > check.MaxDelay) {
			err = fmt.Errorf("%.40q is out of range: give a duration between 0 and 100 years", text)
		}
		return err
	case encoding.TextUnmarshaler: // ids and times
		if err := typed.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%.60q is not valid: %w", text, err)
		}
		return nil
	}
	switch to.Kind() {
	case reflect.String:
		to.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%.40q is not a boolean: give true or false", text)
		}
		to.SetBool(b)
	case reflect.Int, reflect.Int16, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, to.Type().Bits())
		if err != nil {
			return fmt.Errorf("%.40q is not an integer", text)
		}
		to.SetInt(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%.40q is not a number", text)
		}
		to.SetFloat(f)
	default:
		return fmt.Errorf("parameters of type %v are not supported", to.Type())
	}
	return nil
}

// Encode is the reverse of Decode: it returns the path with its parameters and query, the headers, and the body if there is one.
func Encode(path string, in any) (target string, header http.Header, body any, err error) {
	v := reflect.ValueOf(in)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	s := layoutOf(v.Type())
	header, query := http.Header{}, url.Values{}
	for _, p := range s.params {
		f := v.FieldByIndex(p.index)
		if p.where != "path" && f.IsZero() {
			continue
		}
		texts, err := formatField(f)
		if err != nil {
			return "", nil, nil, err
		}
		for _, text := range texts {
			switch p.where {
			case "path":
				if text == "" {
					return "", nil, nil, Invalid("%s is empty: give a value", p.name)
				}
				path = strings.Replace(path, "{"+p.name+"}", segment(text), 1)
			case "query":
				query.Add(p.name, text)
			case "header":
				header.Add(p.name, text)
			}
		}
	}
	if s.body != nil {
		body = v.FieldByIndex(s.body).Interface()
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, header, body, nil
}

// segment escapes a name so that it is exactly one segment of a path, also if it contains slashes or dots.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// formatField formats a field as parameter values.
func formatField(f reflect.Value) ([]string, error) {
	if f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	switch typed := f.Interface().(type) {
	case time.Duration:
		return []string{typed.String()}, nil
	case encoding.TextMarshaler:
		text, err := typed.MarshalText()
		return []string{string(text)}, err
	}
	if f.Kind() == reflect.Slice {
		texts := make([]string, f.Len())
		for i := range texts {
			texts[i] = f.Index(i).String()
		}
		return texts, nil
	}
	return []string{fmt.Sprint(f.Interface())}, nil
}
