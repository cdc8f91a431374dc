package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
)

// A Strategy says how the delay before a retry grows.
type Strategy string

// The strategies: 5, 25 and 125 seconds and so on up to an hour, or always the same.
const (
	Exponential Strategy = "EXPONENTIAL"
	Fixed       Strategy = "FIXED"
)

// A RetryPolicy says how often shots of a type are retried.
type RetryPolicy struct {
	Max       int           // retries after the first attempt
	Strategy  Strategy      // Exponential when empty
	BaseDelay time.Duration // 5 s when zero
}

// Retries say which shots are retried, how often and when.
type Retries struct {
	Types   map[JobType]RetryPolicy // a type without one has three retries with growing delays
	Users   map[string]int          // the most retries of each shot of a user, by e-mail address in lower case
	Windows *policy.Set             // when shots are not retried, as a policy of the engine; nil: never
}

func (r Retries) of(t JobType) RetryPolicy {
	p, ok := r.Types[t]
	if !ok {
		p.Max = 3
	}
	if p.Strategy == "" {
		p.Strategy = Exponential
	}
	if p.BaseDelay == 0 {
		p.BaseDelay = 5 * time.Second
	}
	return p
}

// forEngine returns the policy for the engine.
func (p RetryPolicy) forEngine(crashes int, learned bool) failure.Policy {
	tripped := true // only shots that find no browser are throttled
	out := failure.Policy{ThrottleTripsBreaker: &tripped, MaxAttempts: p.Max + 1, MaxCrashes: crashes, Backoff: failure.Exponential{Base: p.BaseDelay, Factor: 5, Cap: time.Hour}, Learned: learned}
	if p.Strategy == Fixed {
		out.Backoff = failure.Fixed(p.BaseDelay)
	}
	return out
}

const maxRetries = 20

// A retryFile is what a file with retry policies consists of.
type retryFile struct {
	Retry struct {
		Policies []typePolicy `yaml:"policies"`
		Users    []userLimit  `yaml:"users"`
		Windows  []window     `yaml:"noRetries"`
	} `yaml:"retry"`
}

type typePolicy struct {
	JobType         JobType       `yaml:"jobType"`
	MaxRetries      *int          `yaml:"maxRetries"`
	BackoffStrategy Strategy      `yaml:"backoffStrategy"`
	BaseDelay       time.Duration `yaml:"baseDelay"`
	Windows         []window      `yaml:"noRetries"`
}

type userLimit struct {
	User       string `yaml:"user"`
	MaxRetries *int   `yaml:"maxRetries"`
}

// A window is a time of day without retries. Its members are those of the engine's policies.
type window struct {
	From string   `yaml:"from"`
	To   string   `yaml:"to"`
	Zone string   `yaml:"zone,omitempty"`
	Days []string `yaml:"days,omitempty"`
}

// ReadRetries reads policies by type, limits of users and time windows from YAML:
//
//	retry:
//	  policies:
//	    - jobType: SCREENSHOT
//	      maxRetries: 5
//	      backoffStrategy: EXPONENTIAL
//	      baseDelay: 5s
//	  users:
//	    - user: ada@example.org
//	      maxRetries: 1
//	  noRetries:
//	    - {from: "09:00", to: "17:00", zone: Europe/Berlin, days: [mon-fri]}
//
// A policy may have noRetries of its own. The error names every problem.
func ReadRetries(text []byte) (Retries, error) {
	var file retryFile
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&file); err != nil && !errors.Is(err, io.EOF) { // an empty file
		return Retries{}, err
	}
	r := Retries{Types: map[JobType]RetryPolicy{}, Users: map[string]int{}}
	windows := map[JobType][]window{TypeScreenshot: file.Retry.Windows, TypePDF: file.Retry.Windows}
	problems := checkWindows("noRetries", file.Retry.Windows)
	bad := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, p := range file.Retry.Policies {
		_, twice := r.Types[p.JobType]
		bad(p.JobType != TypeScreenshot && p.JobType != TypePDF, "jobType %q: use SCREENSHOT or PDF_GENERATION", p.JobType)
		bad(twice, "jobType %s has two policies: leave one", p.JobType)
		bad(p.BackoffStrategy != "" && p.BackoffStrategy != Exponential && p.BackoffStrategy != Fixed, "backoffStrategy %q: use EXPONENTIAL or FIXED", p.BackoffStrategy)
		bad(p.BaseDelay < 0 || p.BaseDelay > time.Hour, "baseDelay %v: use up to 1h", p.BaseDelay)
		one := RetryPolicy{Max: 3, Strategy: p.BackoffStrategy, BaseDelay: p.BaseDelay}
		if p.MaxRetries != nil {
			one.Max = *p.MaxRetries
		}
		bad(one.Max < 0 || one.Max > maxRetries, "maxRetries %d: use 0 to %d", one.Max, maxRetries)
		r.Types[p.JobType] = one
		problems = append(problems, checkWindows("noRetries of "+string(p.JobType), p.Windows)...)
		windows[p.JobType] = slices.Concat(windows[p.JobType], p.Windows)
	}
	for _, u := range file.Retry.Users {
		email := strings.ToLower(u.User)
		_, twice := r.Users[email]
		bad(!strings.Contains(email, "@"), "user %q: use an e-mail address", u.User)
		bad(twice, "user %s has two limits: leave one", u.User)
		bad(u.MaxRetries == nil || *u.MaxRetries < 0 || *u.MaxRetries > maxRetries, "user %s: maxRetries is required: use 0 to %d", u.User, maxRetries)
		if u.MaxRetries != nil {
			r.Users[email] = *u.MaxRetries
		}
	}
	if len(problems) > 0 {
		return Retries{}, errors.Join(problems...)
	}
	var err error
	r.Windows, err = windowPolicy(windows)
	return r, err
}

// checkWindows returns the problems of each window.
func checkWindows(where string, list []window) (all []error) {
	for i, w := range list {
		_, err := windowPolicy(map[JobType][]window{TypeScreenshot: {w}})
		found := policy.Problems(nil)
		switch {
		case errors.As(err, &found):
			for _, p := range found {
				all = append(all, fmt.Errorf("%s, window %d: %s", where, i+1, strings.TrimPrefix(p.Text, "kinds.screenshot.no_retries[1].")))
			}
		case err != nil:
			all = append(all, fmt.Errorf("%s, window %d: %w", where, i+1, err))
		}
	}
	return all
}

// windowPolicy returns windows by type as a policy of the engine, and nil if there are none.
func windowPolicy(windows map[JobType][]window) (*policy.Set, error) {
	kinds := map[string]any{}
	for t, list := range windows {
		if len(list) > 0 {
			kinds[kindOf(t)] = map[string]any{"no_retries": list}
		}
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	text, err := yaml.Marshal(map[string]any{"kinds": kinds})
	if err != nil {
		return nil, err
	}
	return policy.Parse(text)
}

// retriesOf returns the retries of a shot: those that its request asks for, or those of its type, and no more than its user may have. limited is false if the policy
// of its type decides alone.
func (s *Service) retriesOf(ctx context.Context, c Caller, t JobType, asked *int) (n int, limited bool, err error) {
	n = s.cfg.Retries.of(t).Max
	if asked != nil {
		n, limited = *asked, true
	}
	if len(s.cfg.Retries.Users) == 0 || c.User == "" {
		return n, limited, nil
	}
	email, err := s.cfg.Email(ctx, c.User)
	if err != nil {
		return 0, false, err
	}
	if most, has := s.cfg.Retries.Users[strings.ToLower(email)]; has && most < n {
		return most, true, nil
	}
	return n, limited, nil
}
