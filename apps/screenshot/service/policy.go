package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/failure"
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

// Retries are the policies by type. A type without one has three retries with growing delays.
type Retries map[JobType]RetryPolicy

func (r Retries) of(t JobType) RetryPolicy {
	p, ok := r[t]
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

// policy returns the policy for the engine.
func (p RetryPolicy) policy(crashes int, learned bool) failure.Policy {
	tripped := true // only shots that find no browser are throttled
	out := failure.Policy{ThrottleTripsBreaker: &tripped, MaxAttempts: p.Max + 1, MaxCrashes: crashes, Backoff: failure.Exponential{Base: p.BaseDelay, Factor: 5, Cap: time.Hour}, Learned: learned}
	if p.Strategy == Fixed {
		out.Backoff = failure.Fixed(p.BaseDelay)
	}
	return out
}

const maxRetries = 20

// ReadRetries reads policies by type from YAML:
//
//	retry:
//	  policies:
//	    - jobType: SCREENSHOT
//	      maxRetries: 5
//	      backoffStrategy: EXPONENTIAL
//	      baseDelay: 5s
//
// The error names every problem.
func ReadRetries(text []byte) (Retries, error) {
	var file struct {
		Retry struct {
			Policies []struct {
				JobType         JobType       `yaml:"jobType"`
				MaxRetries      *int          `yaml:"maxRetries"`
				BackoffStrategy Strategy      `yaml:"backoffStrategy"`
				BaseDelay       time.Duration `yaml:"baseDelay"`
			} `yaml:"policies"`
		} `yaml:"retry"`
	}
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&file); err != nil && !errors.Is(err, io.EOF) { // an empty file
		return nil, err
	}
	all, problems := Retries{}, []error(nil)
	bad := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, p := range file.Retry.Policies {
		_, twice := all[p.JobType]
		bad(p.JobType != TypeScreenshot && p.JobType != TypePDF, "jobType %q: use SCREENSHOT or PDF_GENERATION", p.JobType)
		bad(twice, "jobType %s has two policies: leave one", p.JobType)
		bad(p.BackoffStrategy != "" && p.BackoffStrategy != Exponential && p.BackoffStrategy != Fixed, "backoffStrategy %q: use EXPONENTIAL or FIXED", p.BackoffStrategy)
		bad(p.BaseDelay < 0 || p.BaseDelay > time.Hour, "baseDelay %v: use up to 1h", p.BaseDelay)
		one := RetryPolicy{Max: 3, Strategy: p.BackoffStrategy, BaseDelay: p.BaseDelay}
		if p.MaxRetries != nil {
			one.Max = *p.MaxRetries
		}
		bad(one.Max < 0 || one.Max > maxRetries, "maxRetries %d: use 0 to %d", one.Max, maxRetries)
		all[p.JobType] = one
	}
	return all, errors.Join(problems...)
}
