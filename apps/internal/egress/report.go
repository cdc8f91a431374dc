package egress

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// A Reason says why a request was refused or failed before it reached its target.
type Reason string

// The reasons.
const (
	Blocked        Reason = "address blocked"      // the address is not public
	Denied         Reason = "host denied"          // Limits.Deny
	Protocol       Reason = "protocol"             // neither plain HTTP nor CONNECT
	NoSuchName     Reason = "no such name"         // the name does not exist
	ResolveTimeout Reason = "resolver timed out"   // the resolver did not answer in time
	ResolveFailed  Reason = "resolver failed"      // the resolver failed otherwise
	ConnectTimeout Reason = "connecting timed out" // the target did not accept a connection in time
	ConnectFailed  Reason = "connecting failed"    // the target refused the connection, or cannot be reached
	TooMany        Reason = "too many connections" // Limits.Open, Limits.Connections or Limits.Names
	TooLarge       Reason = "too many bytes"       // Limits.Bytes
)

// A Refusal is a host that a program asked for, and why it was not connected.
type Refusal struct {
	Host   string `json:"host"` // host:port, as the program wrote it
	Reason Reason `json:"reason"`
	Times  int    `json:"times"`
}

// maxRefusals is how many different refusals a report has. Further ones are only counted.
const maxRefusals = 100

// A Report says what a program did with its credential so far.
type Report struct {
	Connections int   // that were made
	Bytes       int64 // that were sent and received
	Refused     int   // requests that were refused, or that reached no target
	Refusals    []Refusal
}

// Count returns how often requests were refused for a reason.
func (r Report) Count(reason Reason) (times int) {
	for _, one := range r.Refusals {
		if one.Reason == reason {
			times += one.Times
		}
	}
	return times
}

// Of returns why a host:port was refused, and "" if it was not. A later reason replaces an earlier one.
func (r Report) Of(host string) Reason {
	for _, one := range slices.Backward(r.Refusals) {
		if one.Host == host {
			return one.Reason
		}
	}
	return ""
}

// Report returns the report of a credential. It may be called after Close.
func (c *Client) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	report := c.report
	report.Refusals = slices.Clone(report.Refusals)
	return report
}

// refuse counts a refusal.
func (c *Client) refuse(host string, reason Reason, err error) {
	c.proxy.cfg.Log.Info("connection refused", "event", "egress_refused", "host", host, "reason", string(reason), "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Refused++
	for i, one := range c.report.Refusals {
		if one.Host == host && one.Reason == reason {
			c.report.Refusals[i].Times++
			return
		}
	}
	if len(c.report.Refusals) < maxRefusals {
		c.report.Refusals = append(c.report.Refusals, Refusal{host, reason, 1})
	}
}

// errDenied, errTooMany and errTooLarge are the errors of the limits of a credential.
var (
	errDenied   = errors.New("the host is on the list of hosts that are not called")
	errTooMany  = errors.New("the credential has no connections left")
	errTooLarge = errors.New("the credential has no bytes left")
)

// reasonOf returns the reason of an error of connect.
func reasonOf(err error) Reason {
	unresolved, isName := errors.AsType[*net.DNSError](err)
	slow, isNet := errors.AsType[net.Error](err)
	late := errors.Is(err, context.DeadlineExceeded) || isNet && slow.Timeout()
	switch {
	case errors.Is(err, safehttp.ErrBlocked):
		return Blocked
	case errors.Is(err, errDenied):
		return Denied
	case errors.Is(err, errTooMany):
		return TooMany
	case errors.Is(err, errTooLarge):
		return TooLarge
	case isName && late:
		return ResolveTimeout
	case isName && unresolved.IsNotFound:
		return NoSuchName
	case isName:
		return ResolveFailed
	case late:
		return ConnectTimeout
	}
	return ConnectFailed
}
