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

// A Class is the result of a Rule.
type Class struct {
	Code       string            // name of a code in the taxonomy
	Dependency string            // the dependency that failed, if the rule knows it
	Rule       string            // which rule matched, in words that fit after "by": "HTTP status 502"
	Context    map[string]string // facts for the failure record
	RetryAfter time.Duration     // wait that the dependency asked for
}

// A Rule classifies an error, or returns false if it does not know the error. Rules run in the loop that settles attempts:
// they must be fast, free of side effects and safe for concurrent use.
type Rule func(err error) (Class, bool)

// Chain returns a rule that tries rules in order and uses the first that matches. Nil rules are skipped.
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

// ByType returns a rule that gives a code to errors of type E, wrapped or not.
func ByType[E error](code string) Rule {
	return func(err error) (Class, bool) {
		found, ok := errors.AsType[E](err)
		if !ok {
			return Class{}, false
		}
		return Class{Code: code, Rule: fmt.Sprintf("the error type %T", found)}, true
	}
}

// ByError returns a rule that gives a code to errors for which errors.Is(err, target) is true.
func ByError(target error, code string) Rule {
	return func(err error) (Class, bool) {
		if target == nil || !errors.Is(err, target) {
			return Class{}, false
		}
		return Class{Code: code, Rule: fmt.Sprintf("the error %q", target.Error())}, true
	}
}

// ByHTTPStatus returns a rule for errors that carry an HTTP status, made by HTTPError or by a client whose errors have a method
// StatusCode or HTTPStatusCode. Its codes for 5xx are retryable; those for 4xx are final, except for 408, 425, 429 and 499.
func ByHTTPStatus() Rule { return ByHTTPStatusTable(nil) }

// ByHTTPStatusTable is ByHTTPStatus with codes of the application. A key of 4 or 5 stands for all of 4xx or 5xx
// that the table does not name; 408, 425, 429 and 499 keep their built-in codes unless the table names them.
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

// statusCodes maps an HTTP status to a code when the application does not. A single digit stands for the rest of its hundred.
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
	case 408, 425, 429, 499: // the 4xx that may succeed later
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

// ByExitCode returns a rule for the exit codes of programs, from ExitError or *exec.ExitError. -1 is a program that a signal
// ended. The rule does not match exit codes that the table does not name.
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

// ByText returns a rule that gives a code to errors whose text matches a regular expression. Like regexp.MustCompile it
// panics if the pattern is invalid. Texts change easily: put such rules last.
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

// ByTimeout returns a rule that gives a code to timeouts: context.DeadlineExceeded, and errors whose method Timeout returns
// true, such as those of package net.
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

// Always returns a rule that gives every error a code: the default at the end of a chain.
func Always(code string) Rule {
	return func(error) (Class, bool) { return Class{Code: code, Rule: "the default"}, true }
}

// DefaultRule classifies errors that the application's own rules do not know. It knows HTTP statuses, exit codes, timeouts,
// file errors, busy databases, errors of package holdfast, and a few common error texts. Errors that it does not know get
// the code UNKNOWN.
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

// transientSQLStates lists prefixes of SQLSTATE codes that do not depend on the statement: connections, lost serialization
// races, locks, a server that is stopping or has too many connections, and internal errors of the server.
var transientSQLStates = []string{"08", "40", "53", "55P03", "57", "58"}

// byDatabase knows errors that carry an SQLSTATE, as those of PostgreSQL drivers do, and SQLite's result codes for a file
// that another connection is writing to. Both are worth a retry.
func byDatabase(err error) (class Class, ok bool) {
	walk(err, func(e error) bool {
		switch e := e.(type) {
		case interface{ SQLState() string }:
			state := e.SQLState()
			if state == "53100" {
				class, ok = Class{Code: codeDiskFull, Rule: "SQLSTATE " + state}, true
			} else if slices.ContainsFunc(transientSQLStates, func(prefix string) bool { return strings.HasPrefix(state, prefix) }) {
				class, ok = Class{Code: codeUnavailable, Rule: "SQLSTATE " + state}, true
			}
		case interface{ Code() int }:
			// Other libraries have numeric codes too, so the text must match as well.
			if primary := e.Code() & 0xff; (primary == 5 || primary == 6) && strings.Contains(textOf(err), "locked") {
				class, ok = Class{Code: codeUnavailable, Rule: "SQLite result code " + strconv.Itoa(e.Code())}, true
			}
		}
		return !ok
	})
	return class, ok
}

// byWords returns a rule that gives a code to errors whose text contains one of some words, given in lower case.
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

// classify tries the application's rules, then the built-in ones, and falls back to UNKNOWN.
func (r Rules) classify(err error) (class Class) {
	class, ok := guarded(Chain(selfWrapping, r.Classify, DefaultRule), err)
	if !ok || class.Code == "" {
		class.Code = codeUnknown
	}
	if class.Rule == "" {
		class.Rule = "an unnamed rule"
		if !ok {
			class.Rule = "the default, because no rule matches"
		}
	}
	return class
}

// selfWrapping matches an error that wraps itself. No other rule may see it, because errors.Is would not return.
func selfWrapping(err error) (Class, bool) {
	enough := walk(err, func(error) bool { return true })
	return Class{Code: codeUnknown, Rule: "the default, because the error wraps itself"}, !enough
}

// guarded calls a rule and recovers from a panic. Errors of other packages have methods of their own, and a common mistake
// is a nil pointer in an error interface; neither may stop the engine.
func guarded(rule Rule, err error) (class Class, ok bool) {
	defer func() {
		if recover() != nil {
			class, ok = Class{Code: codeUnknown, Rule: "the default, because a rule panicked"}, true
		}
	}()
	return rule(err)
}

// textOf returns an error's text, up to maxText bytes, even if its Error method panics.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("an error of type %T whose Error method panics", err)
		}
	}()
	text = err.Error()
	return text[:min(len(text), maxText)]
}
