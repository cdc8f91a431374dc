package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Class is what a rule makes of an error.
type Class struct {
	Code       string            // a name in the taxonomy
	Dependency string            // what caused it, if the rule knows
	Rule       string            // which rule said so, in words that fit after "by": "HTTP status 502"
	Context    map[string]string // facts for the record
	RetryAfter time.Duration     // how long the other side asked us to wait
}

// A Rule classifies errors it knows and says false to the others. Rules are asked in the loop that writes settlements, so
// they must be quick and touch nothing outside.
type Rule func(err error) (Class, bool)

// Chain asks rules in order; the first that knows the error decides.
func Chain(rules ...Rule) Rule {
	return func(err error) (Class, bool) {
		for _, rule := range rules {
			if rule == nil {
				continue
			}
			if class, ok := rule(err); ok {
				return class, true
			}
		}
		return Class{}, false
	}
}

// ByType gives a code to errors of type E, wrapped or not.
func ByType[E error](code string) Rule {
	return func(err error) (Class, bool) {
		found, ok := errors.AsType[E](err)
		if !ok {
			return Class{}, false
		}
		return Class{Code: code, Rule: fmt.Sprintf("the error type %T", found)}, true
	}
}

// ByError gives a code to errors that are target, in the sense of errors.Is.
func ByError(target error, code string) Rule {
	return func(err error) (Class, bool) {
		if target == nil || !errors.Is(err, target) {
			return Class{}, false
		}
		return Class{Code: code, Rule: fmt.Sprintf("the error %q", target.Error())}, true
	}
}

// ByHTTPStatus classifies errors that carry an HTTP status, made by HTTPError or by a client whose errors have a method
// StatusCode or HTTPStatusCode. 5xx may be retried; 4xx may not, except 408, 425, 429 and 499.
func ByHTTPStatus() Rule { return ByHTTPStatusTable(nil) }

// ByHTTPStatusTable is ByHTTPStatus with codes of the application's own. A key of 4 or 5 stands for all of 4xx or 5xx
// that the table does not name; 408, 425, 429 and 499 keep their built-in meaning unless they are named themselves.
func ByHTTPStatusTable(table map[int]string) Rule {
	table = maps.Clone(table)
	return func(err error) (Class, bool) {
		status, ok := httpStatus(err)
		if !ok {
			return Class{}, false
		}
		code, ok := codeOfStatus(status, table)
		return Class{Code: code, Rule: "HTTP status " + strconv.Itoa(status)}, ok
	}
}

// statusCodes is what an HTTP status means when the application does not say otherwise. The single digits stand for the
// rest of their hundred.
var statusCodes = map[int]string{
	4: codeHTTP4XX, 400: codeBadRequest, 401: codeUnauthorized, 403: codeAuthDenied, 404: codeNotFound, 410: codeNotFound,
	413: codeTooLarge, 422: codeBadRequest,
	408: codeHTTPTimeout, 425: codeRateLimited, 429: codeRateLimited, 499: codeHTTPTimeout,
	5: codeHTTP5XX, 503: codeDown, 504: codeHTTPTimeout,
}

func codeOfStatus(status int, own map[int]string) (string, bool) {
	if code, ok := own[status]; ok {
		return code, true
	}
	switch status {
	case 408, 425, 429, 499: // the 4xx that waiting cures
		return statusCodes[status], true
	}
	for _, lookup := range []struct {
		table map[int]string
		key   int
	}{{own, status / 100}, {statusCodes, status}, {statusCodes, status / 100}} {
		if code, ok := lookup.table[lookup.key]; ok {
			return code, true
		}
	}
	return "", false
}

// ByExitCode classifies the exit codes of programs, from ExitError or *exec.ExitError. -1 is a program that a signal ended.
// Exit codes that the table does not name are left to other rules.
func ByExitCode(table map[int]string) Rule {
	table = maps.Clone(table)
	return func(err error) (Class, bool) {
		exit, ok := exitCode(err)
		if !ok {
			return Class{}, false
		}
		code, ok := table[exit]
		return Class{Code: code, Rule: "exit code " + strconv.Itoa(exit)}, ok
	}
}

// ByText gives a code to errors whose text matches a regular expression. Like regexp.MustCompile it panics when the pattern
// is not one: rules are part of the program. Text is the weakest evidence; put such rules last.
func ByText(pattern, code string) Rule {
	expression := regexp.MustCompile(pattern)
	return func(err error) (Class, bool) {
		found := expression.FindString(textOf(err))
		if found == "" {
			return Class{}, false
		}
		return Class{Code: code, Rule: fmt.Sprintf("the text %q", Scrub(cut(found, 60)))}, true
	}
}

// ByTimeout gives a code to whatever ran out of time: context.DeadlineExceeded, and errors whose method Timeout says so, as
// those of package net do.
func ByTimeout(code string) Rule {
	return func(err error) (Class, bool) {
		late := errors.Is(err, context.DeadlineExceeded)
		walk(err, func(e error) bool {
			if e, ok := e.(interface{ Timeout() bool }); ok && e.Timeout() {
				late = true
			}
			return !late
		})
		return Class{Code: code, Rule: "a timeout in the error"}, late
	}
}

// Always gives every error a code: the stated default at the end of a chain.
func Always(code string) Rule {
	return func(error) (Class, bool) { return Class{Code: code, Rule: "the stated default"}, true }
}

// DefaultRule is asked after an application's own rules. It knows HTTP statuses, exit codes, timeouts, file errors,
// databases that are busy, this engine's own errors and a few texts that mean the same everywhere. What it does not know is UNKNOWN.
func DefaultRule(err error) (Class, bool) { return defaultRule(err) }

var defaultRule = Chain(
	ByHTTPStatus(),
	ByExitCode(map[int]string{-1: codeKilled, 137: codeKilled, 124: codeTimeout}),
	byAnyExitCode,
	ByTimeout(codeTimeout),
	ByError(fs.ErrPermission, codeDenied),
	ByError(fs.ErrNotExist, codeMissing),
	byDatabase,
	ByError(holdfast.ErrInvalid, codeInvalidInput),
	ByError(holdfast.ErrNotFound, codeNotFound),
	ByError(holdfast.ErrUnavailable, codeUnavailable),
	byWords(codeUnavailable, "sqlite_busy", "sqlite_locked", "database is locked", "database table is locked", "driver: bad connection"),
	byWords(codeDiskFull, "no space left", "disk full", "disk is full", "disk quota exceeded"),
	byWords(codeOutOfMemory, "out of memory", "cannot allocate memory"),
	byWords(codeNetwork, "connection refused", "connection reset", "broken pipe", "no route to host", "network is unreachable",
		"no such host", "name resolution"),
	byWords(codeRateLimited, "too many requests", "rate limit"),
	byWords(codeTimeout, "timed out", "timeout", "deadline exceeded"),
	ByError(io.ErrUnexpectedEOF, codeIO),
)

func byAnyExitCode(err error) (Class, bool) {
	exit, ok := exitCode(err)
	return Class{Code: codeExitCode, Rule: "exit code " + strconv.Itoa(exit)}, ok
}

// passing are the beginnings of SQLSTATE codes that say nothing about the statement: connections, transactions that lost a race, locks, a server
// that stops or is full of connections, and its own trouble.
var passing = []string{"08", "40", "53", "55P03", "57", "58"}

// byDatabase knows databases that say what happened by an SQLSTATE, as the drivers of PostgreSQL do, and SQLite's result codes for a file that another
// connection writes to. Work that meets either is done again.
func byDatabase(err error) (class Class, ok bool) {
	walk(err, func(e error) bool {
		switch e := e.(type) {
		case interface{ SQLState() string }:
			state := e.SQLState()
			if state == "53100" {
				class, ok = Class{Code: codeDiskFull, Rule: "SQLSTATE " + state}, true
			} else if slices.ContainsFunc(passing, func(begin string) bool { return strings.HasPrefix(state, begin) }) {
				class, ok = Class{Code: codeUnavailable, Rule: "SQLSTATE " + state}, true
			}
		case interface{ Code() int }:
			// Other libraries number their errors too, so the text has to agree.
			if primary := e.Code() & 0xff; (primary == 5 || primary == 6) && strings.Contains(textOf(err), "locked") {
				class, ok = Class{Code: codeUnavailable, Rule: "SQLite result code " + strconv.Itoa(e.Code())}, true
			}
		}
		return !ok
	})
	return class, ok
}

// byWords gives a code to errors whose text has any of some words, given in lower case.
func byWords(code string, words ...string) Rule {
	return func(err error) (Class, bool) {
		text := strings.ToLower(textOf(err))
		for _, word := range words {
			if strings.Contains(text, word) {
				return Class{Code: code, Rule: fmt.Sprintf("the text %q", word)}, true
			}
		}
		return Class{}, false
	}
}

// classify asks the application's rules, then the built-in ones, and states the default.
func (r Rules) classify(err error) (class Class) {
	class, ok := guarded(Chain(endless, r.Classify, DefaultRule), err)
	if !ok || class.Code == "" {
		class.Code = codeUnknown
	}
	if class.Rule == "" {
		class.Rule = "a rule that does not say its name"
		if !ok {
			class.Rule = "the stated default, as no rule knows it"
		}
	}
	return class
}

// endless keeps an error that wraps itself from the other rules: errors.Is would never come back from it.
func endless(err error) (Class, bool) {
	enough := walk(err, func(error) bool { return true })
	return Class{Code: codeUnknown, Rule: "the stated default, as the error wraps itself"}, !enough
}

// guarded asks a rule that may panic. Foreign errors have methods of their own, and a nil pointer in an error interface is
// the classic one; none of that may take the engine down.
func guarded(rule Rule, err error) (class Class, ok bool) {
	defer func() {
		if recover() != nil {
			class, ok = Class{Code: codeUnknown, Rule: "the stated default, as a rule panicked on it"}, true
		}
	}()
	return rule(err)
}

// textOf is an error's text, or the beginning of a very long one, also when asking for it panics.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("an error of type %T that cannot say what it is", err)
		}
	}()
	text = err.Error()
	return text[:min(len(text), maxText)]
}
