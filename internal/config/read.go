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

// A Value is the value of a setting and where it comes from.
type Value struct {
	Text string
	From string // "default", the name of an environment variable, or a flag
}

// Values are the values of all settings. The zero value is not usable; Read returns one.
type Values struct{ of map[string]Value }

// Read reads the settings from environ, which has the form of os.Environ. The error names every problem. An unknown variable that begins with HOLDFAST_ is an error,
// because it is probably misspelled and would have no effect.
func Read(environ []string) (Values, error) {
	env := make(map[string]string, len(environ))
	for _, line := range environ {
		if name, text, ok := strings.Cut(line, "="); ok {
			env[name] = text
		}
	}
	v := Values{make(map[string]Value, len(Settings))}
	problems := []error{unknown(env)}
	for _, s := range Settings {
		value, err := s.read(env)
		problems = append(problems, err)
		v.of[s.Name] = value
	}
	return v, errors.Join(problems...)
}

// read returns the value of a setting in the environment. The variable HOLDFAST_NAME takes precedence over the aliases.
func (s Setting) read(env map[string]string) (Value, error) {
	for _, name := range append([]Alias{{Env: s.Env()}}, s.Also...) {
		text, ok := env[name.Env]
		if file, inFile := env[name.Env+fileSuffix]; s.Secret && inFile && file != "" {
			if ok && text != "" {
				return Value{}, fmt.Errorf("%s and %s%s are both set: set one", name.Env, name.Env, fileSuffix)
			}
			read, err := secretFile(file)
			if err != nil {
				return Value{}, fmt.Errorf("%s%s: the file cannot be read: check its name and permissions", name.Env, fileSuffix)
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

// secretFile reads a secret from a file, without line breaks at its end.
func secretFile(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSecret))
	return strings.TrimRight(string(text), "\r\n"), err
}

// inUnit converts a bare number to a duration, for an alias that has a unit.
func (s Setting) inUnit(text string, unit time.Duration) (string, error) {
	if unit == 0 {
		return text, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < 1e12) {
		return "", fmt.Errorf("%.40q is not a number", text)
	}
	return time.Duration(n * float64(unit)).String(), nil
}

// check validates a value.
func (s Setting) check(text string) (err error) {
	switch {
	case len(s.Choices) > 0 && !slices.Contains(s.Choices, text):
		return fmt.Errorf("%.40q: use %s", text, strings.Join(s.Choices, ", "))
	case s.Form == Count:
		if n, err := strconv.Atoi(text); err != nil || n < 0 {
			return fmt.Errorf("%.40q is not a whole number of 0 or more", text)
		}
	case s.Form == Share:
		_, err = share(text)
	case s.Form == Span:
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return fmt.Errorf("%.40q is not a duration: use a form such as 1m30s, 500ms or 36h", text)
		}
	case s.Form == Switch:
		if _, err := strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%.40q: use true or false", text)
		}
	}
	return err
}

// share parses 50%, 0.5 or, as a percentage, 50.
func share(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err := strconv.ParseFloat(number, 64)
	if isPercent || n > 1 {
		n /= 100
	}
	if err != nil || !(n > 0 && n <= 1) {
		return 0, fmt.Errorf("%.40q is not a share: use a form such as 50%% or 0.5", text)
	}
	return n, nil
}

// Set sets the value of a flag. It takes precedence over the environment.
func (v Values) Set(name, text string) error {
	s := find(name)
	if err := s.check(text); err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	v.of[name] = Value{text, "--" + name}
	return nil
}

// Of returns the value of a setting. Like all methods that take a name, it panics if there is no such setting.
func (v Values) Of(name string) Value { return v.of[find(name).Name] }

// IsSet reports whether a setting was set, as opposed to having its default.
func (v Values) IsSet(name string) bool { return v.Of(name).From != "default" }

// Text returns the value of a setting as it is written.
func (v Values) Text(name string) string { return v.Of(name).Text }

// Int returns the value of a setting of form Count.
func (v Values) Int(name string) int {
	n, _ := strconv.Atoi(v.Text(name)) // the value was validated
	return n
}

// Float returns the value of a setting of form Share, from 0 to 1.
func (v Values) Float(name string) float64 {
	n, _ := share(v.Text(name))
	return n
}

// Duration returns the value of a setting of form Span.
func (v Values) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(v.Text(name))
	return d
}

// Bool returns the value of a setting of form Switch.
func (v Values) Bool(name string) bool {
	on, _ := strconv.ParseBool(v.Text(name))
	return on
}

// List returns the value of a setting of form List, without empty elements.
func (v Values) List(name string) (list []string) {
	for part := range strings.SplitSeq(v.Text(name), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
