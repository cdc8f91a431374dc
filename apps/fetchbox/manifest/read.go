package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
)

// errTooLong says that the manifest exceeds MaxBytes.
var errTooLong = errors.New("the manifest is too long")

// ReadJSON reads a manifest that is one JSON document: an object with the array resources. The resources are read one by one, so that an invalid one is named and does
// not hide the others. The error is one of reading from; what is wrong with the content is in the problems.
func ReadJSON(from io.Reader, check Checker) (Manifest, *Problems, error) {
	var to Manifest
	problems := &Problems{}
	limited := &limitedReader{from: from, left: MaxBytes}
	c := newCollector(&to, check, problems)
	if err := c.document(json.NewDecoder(limited)); err != nil {
		if limited.err != nil && limited.err != io.EOF {
			if errors.Is(limited.err, errTooLong) {
				problems.add(0, "", code.ValidationTooLarge, "a manifest has at most %d bytes: send the rest as another job", MaxBytes)
				return to, problems, nil
			}
			return to, problems, limited.err
		}
		problems.add(0, "", code.ValidationInvalidBody, "the manifest is no valid JSON: %s", plain(err))
		return to, problems, nil
	}
	c.finish()
	return to, problems, nil
}

// document reads the outer object.
func (c *collector) document(in *json.Decoder) error {
	if err := c.delimiter(in, '{'); err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // names of fields are strings
		if name == "resources" {
			if err := c.resources(in); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		fields[name] = value
	}
	if err := c.delimiter(in, '}'); err != nil {
		return err
	}
	if _, err := in.Token(); err != io.EOF {
		return errors.New("there is something after the end of the document; for one resource in each line send Content-Type: application/x-ndjson")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	c.strict(0, text, &c.to.Defaults)
	return nil
}

func (c *collector) delimiter(in *json.Decoder, wanted json.Delim) error {
	token, err := in.Token()
	if err != nil {
		return err
	}
	if token != wanted {
		return fmt.Errorf("expected %q; a manifest is an object with the array resources", wanted.String())
	}
	return nil
}

func (c *collector) resources(in *json.Decoder) error {
	if err := c.delimiter(in, '['); err != nil {
		return err
	}
	for line := 1; in.More(); line++ {
		var text json.RawMessage
		if err := in.Decode(&text); err != nil {
			return err
		}
		c.line(line, text)
	}
	return c.delimiter(in, ']')
}

// line reads one resource.
func (c *collector) line(line int, text []byte) {
	var r Resource
	switch {
	case len(text) > MaxLine:
		c.problems.add(line, "", code.ValidationTooLarge, "the resource has %d bytes: the limit is %d", len(text), MaxLine)
	case !isObject(text):
		c.problems.add(line, "", code.ValidationInvalidBody, "a resource is a JSON object such as {\"url\": \"https://example.com/a\"}")
	case c.strict(line, text, &r):
		c.add(line, r)
	}
}

// strict decodes an object and refuses fields that do not exist: a misspelt name must not be ignored.
func (c *collector) strict(line int, text []byte, into any) bool {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	err := in.Decode(into)
	if err == nil {
		return true
	}
	var wrong *json.UnmarshalTypeError
	field, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case errors.As(err, &wrong):
		c.problems.add(line, wrong.Field, code.ValidationInvalidField, "%s cannot be a %s", wrong.Field, wrong.Value)
	case unknown:
		c.problems.add(line, strings.Trim(field, `"`), code.ValidationInvalidField, "there is no field %s", field)
	default:
		c.problems.add(line, "", code.ValidationInvalidBody, "this is no valid JSON: %s", plain(err))
	}
	return false
}

// ReadLines reads a manifest with one resource in each line. Empty lines are skipped. The defaults come from elsewhere, such as the query of the request.
func ReadLines(from io.Reader, defaults Defaults, check Checker) (Manifest, *Problems, error) {
	to := Manifest{Defaults: defaults}
	problems := &Problems{}
	c := newCollector(&to, check, problems)
	limited := &limitedReader{from: from, left: MaxBytes}
	in := bufio.NewReaderSize(limited, MaxLine)
	for line := 1; ; line++ {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			problems.add(line, "", code.ValidationTooLarge, "the line has more than %d bytes", MaxLine)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = in.ReadSlice('\n')
			}
			text = nil
		}
		if errors.Is(err, errTooLong) {
			problems.add(line, "", code.ValidationTooLarge, "a manifest has at most %d bytes: send the rest as another job", MaxBytes)
			return to, problems, nil
		}
		if err != nil && err != io.EOF { //nolint:errorlint // io.EOF itself is the end
			return to, problems, err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			c.line(line, text)
		}
		if err == io.EOF {
			break
		}
	}
	c.finish()
	return to, problems, nil
}

// A limitedReader fails after a number of bytes, and keeps the error of what it reads from.
type limitedReader struct {
	from io.Reader
	left int64
	err  error
}

// Read returns errTooLong once the limit is exceeded.
func (l *limitedReader) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		n, err = 0, errTooLong
	}
	l.err = err
	return n, err
}

// plain returns an error of encoding/json in words for people.
func plain(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
