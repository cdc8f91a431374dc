package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Value is what a setting is set to, and where that was said.
type Value struct {
	Text string
	From string // "default", a name in the environment, or a flag
}

// Values are what everything is set to. The zero value is of no use: Read makes one.
type Values struct{ of map[string]Value }

// Read reads the environment, given as os.Environ gives it, and names every problem at once. A name that begins with HOLDFAST_ and that nobody
// knows is refused: whoever misspelled it believes that it holds.
func Read(environ []string) (Values, error) {
	said := make(map[string]string, len(environ))
	for _, line := range environ {
		if name, text, ok := strings.Cut(line, "="); ok {
			said[name] = text
		}
	}
	v := Values{make(map[string]Value, len(Settings))}
	problems := []error{unknown(said)}
	for _, s := range Settings {
		value, err := s.read(said)
		problems = append(problems, err)
		v.of[s.Name] = value
	}
	return v, errors.Join(problems...)
}

// read finds what the environment says of a setting. Our own name goes before others.
func (s Setting) read(said map[string]string) (Value, error) {
	for _, name := range append([]Alias{{Env: s.Env()}}, s.Also...) {
		text, ok := said[name.Env]
		if file, inFile := said[name.Env+fileSuffix]; s.Secret && inFile && file != "" {
			if ok && text != "" {
				return Value{}, fmt.Errorf("%s and %s%s are both set: set one", name.Env, name.Env, fileSuffix)
			}
			read, err := secretFile(file)
			if err != nil {
				return Value{}, fmt.Errorf("%s%s: the file cannot be read: check its name and who may read it", name.Env, fileSuffix)
			}
			return Value{read, name.Env + fileSuffix}, nil
		}
		if !ok || text == "" {
			continue
		}
		text, err := s.inUnit(text, name.Unit)
		if err == nil {
			err = s.check(text)
		}
		if err != nil {
			return Value{}, fmt.Errorf("%s: %w", name.Env, err)
		}
		return Value{text, name.Env}, nil
	}
	return Value{s.Default, "default"}, nil
}

const (
	fileSuffix = "_FILE"
	maxSecret  = 1 << 16
)

// secretFile reads a secret. The line's end is not part of it.
func secretFile(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSecret))
	return strings.TrimRight(string(text), "\r\n"), err
}

// inUnit writes a bare number as a duration where the name says of what it is.
func (s Setting) inUnit(text string, unit time.Duration) (string, error) {
	if unit == 0 {
		return text, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < 1e12) {
		return "", fmt.Errorf("%.40q is no number", text)
	}
	return time.Duration(n * float64(unit)).String(), nil
}

// check refuses what the setting cannot be.
func (s Setting) check(text string) (err error) {
	switch {
	case len(s.Choices) > 0 && !slices.Contains(s.Choices, text):
		return fmt.Errorf("%.40q: use %s", text, strings.Join(s.Choices, ", "))
	case s.Form == Count:
		if n, err := strconv.Atoi(text); err != nil || n < 0 {
			return fmt.Errorf("%.40q is no whole number of 0 or more", text)
		}
	case s.Form == Share:
		_, err = share(text)
	case s.Form == Span:
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return fmt.Errorf("%.40q is no duration: write it such as 1m30s, 500ms or 36h", text)
		}
	case s.Form == Switch:
		if _, err := strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%.40q: use true or false", text)
		}
	}
	return err
}

// share reads 50%, 0.5 or, as a percentage, 50.
func share(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err := strconv.ParseFloat(number, 64)
	if isPercent || n > 1 {
		n /= 100
	}
	if err != nil || !(n > 0 && n <= 1) {
		return 0, fmt.Errorf("%.40q is no share: write it such as 50%% or 0.5", text)
	}
	return n, nil
}

// Set says what a flag says: it goes before the environment.
func (v Values) Set(name, text string) error {
	s := find(name)
	if err := s.check(text); err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	v.of[name] = Value{text, "--" + name}
	return nil
}

// Of is what a setting is set to.
func (v Values) Of(name string) Value { return v.of[find(name).Name] }

// Said reports whether somebody set it.
func (v Values) Said(name string) bool { return v.Of(name).From != "default" }

// Text is a setting as it is written.
func (v Values) Text(name string) string { return v.Of(name).Text }

// Count is a setting that is a number.
func (v Values) Count(name string) int {
	n, _ := strconv.Atoi(v.Text(name)) // it was checked
	return n
}

// Share is a setting that is a share.
func (v Values) Share(name string) float64 {
	n, _ := share(v.Text(name))
	return n
}

// Span is a setting that is a duration.
func (v Values) Span(name string) time.Duration {
	d, _ := time.ParseDuration(v.Text(name))
	return d
}

// On is a setting that is a switch.
func (v Values) On(name string) bool {
	on, _ := strconv.ParseBool(v.Text(name))
	return on
}

// List is a setting that is a list.
func (v Values) List(name string) (list []string) {
	for part := range strings.SplitSeq(v.Text(name), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
