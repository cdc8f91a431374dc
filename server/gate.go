package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// admit authenticates and authorises a request and applies the limits. What the request takes from the limits is given back after the answer.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, to mounted) (Caller, error) {
	a := replyOf(w)
	a.route = to.name
	caller, err := s.identify(r)
	caller.Request, a.key = a.id, caller.Key
	if err == nil {
		err = caller.may(to)
	}
	if err == nil {
		err = s.limit(a, caller, to)
	}
	if err == nil && to.long {
		setDeadlines(w, r, true)
	}
	return caller, err
}

// identify authenticates the caller. Only the header Authorization is used: a key in a URL would be in many logs, and a cookie is also sent by pages that
// the caller does not trust.
func (s *Server) identify(r *http.Request) (Caller, error) {
	given := r.Header["Authorization"]
	switch {
	case len(given) == 0:
		return s.keyless(r.Context())
	case len(given) > 1:
		return Caller{}, unauthenticated("the header Authorization is there twice: send it once")
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Caller{}, unauthenticated("send an API key in the header Authorization: Bearer hf_...")
	}
	return s.Authenticate(r.Context(), r.RemoteAddr, text)
}

// keyless is the caller of a request without a key: an admin while the server is open, otherwise ErrUnauthenticated.
func (s *Server) keyless(ctx context.Context) (Caller, error) {
	open := s.cfg.Open
	if open && !s.cfg.IgnoreKeys {
		var err error
		if open, err = s.keys.unlocked(ctx); err != nil {
			return Caller{}, err
		}
	}
	if !open {
		return Caller{}, unauthenticated("send an API key in the header Authorization: Bearer hf_...; create one with 'holdfast keys create'")
	}
	return Caller{Scope: apikey.Admin}, nil
}

// acceptsNoKey reports whether requests without a key may be accepted. Then they must come from this machine.
func (s *Server) acceptsNoKey() bool {
	return s.cfg.Open && (s.cfg.IgnoreKeys || !s.keys.locked.Load())
}

func (s *Server) logLocked() {
	if s.cfg.Open && !s.cfg.IgnoreKeys {
		s.cfg.Log.Info("an API key was created: every request needs one from now on", "event", "locked")
	}
}

// may refuses a route that the caller's scope or binding does not allow, whatever it is about.
func (c Caller) may(to mounted) error {
	if !c.Scope.Allows(to.scope) && (to.also == "" || !c.Scope.Allows(to.also)) {
		needed := string(to.scope)
		if to.also != "" {
			needed += " or " + string(to.also)
		}
		return &holdfast.Error{Err: api.ErrForbidden, Message: "this key has the scope " + string(c.Scope) + ": the operation needs the scope " + needed}
	}
	if c.Owner == "" {
		return nil
	}
	switch to.in.(type) {
	case api.JobNamer, api.GroupNamer, api.Narrower:
		return nil
	}
	return errBound
}

var errBound = &holdfast.Error{Err: api.ErrForbidden, Message: "this key is bound to an owner: it can only be used for that owner's jobs and groups"}

// checkOwner refuses, for a key that is bound to an owner, jobs and groups of other owners. They are answered like unknown ones, so that a caller cannot find out
// what others have.
func (s *Server) checkOwner(ctx context.Context, c Caller, in any) error {
	if c.Owner == "" {
		return nil
	}
	named := false
	if about, ok := in.(api.JobNamer); ok {
		named = true
		if err := s.checkJobOwner(ctx, c, about.JobID()); err != nil {
			return err
		}
	}
	if about, ok := in.(api.GroupNamer); ok {
		named = true
		if err := s.checkGroupOwner(ctx, c, about.GroupID()); err != nil {
			return err
		}
	}
	if about, ok := in.(api.Narrower); ok {
		named = true
		if err := about.Narrow(c.Owner); err != nil {
			return err
		}
	}
	if joiner, ok := in.(api.Joiner); ok {
		for _, group := range joiner.Joins() {
			if err := s.checkGroupOwner(ctx, c, group); err != nil {
				return err
			}
		}
	}
	if !named {
		return errBound
	}
	return nil
}

// checkJobOwner refuses a job of another owner with the error of an unknown job.
func (s *Server) checkJobOwner(ctx context.Context, c Caller, id holdfast.ID) error {
	job, err := s.cfg.Operator.Job(ctx, id)
	if errors.Is(err, holdfast.ErrPurged) {
		stones, _, lost := s.cfg.Operator.Tombstones(ctx, store.TombstoneFilter{Job: id, Limit: 1})
		if lost == nil && len(stones) == 1 && stones[0].Owner == c.Owner {
			return err
		}
		err = noSuchJob(id)
	}
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && job.Owner != c.Owner {
		return noSuchJob(id)
	}
	return err
}

// checkGroupOwner does the same for a group.
func (s *Server) checkGroupOwner(ctx context.Context, c Caller, id holdfast.ID) error {
	if c.Owner == "" {
		return nil
	}
	group, err := s.cfg.Store.Group(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) || err == nil && group.Owner != c.Owner {
		return &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is no group " + id.String() + ": check the id"}
	}
	return err
}

func noSuchJob(id holdfast.ID) error {
	return &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is no job " + id.String() + ": check the id"}
}

// checkRequest refuses malformed requests and requests from other origins, before the caller is authenticated.
func (s *Server) checkRequest(r *http.Request) error {
	at := r.URL.EscapedPath()
	clean := path.Clean(at)
	if strings.HasSuffix(at, "/") && clean != "/" {
		clean += "/"
	}
	switch {
	case !strings.HasPrefix(at, "/") || len(at) > 4096 || len(r.URL.RawQuery) > 16384:
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the URL is too long or has no path: shorten it"}
	case at != clean || !utf8.ValidString(r.URL.Path) || strings.ContainsFunc(r.URL.Path, unicode.IsControl):
		return &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is nothing at this path: it must not have empty segments, dot segments or control characters"}
	}
	if s.acceptsNoKey() {
		if err := checkLocal(r); err != nil {
			return err
		}
	}
	if err := s.origins.Check(r); err != nil {
		return &holdfast.Error{Err: api.ErrForbidden, Message: "requests from pages of another origin are refused: send them from a program, or from a page of this server", Cause: err}
	}
	return nil
}

// checkLocal checks, on a server that accepts requests without a key, that a request comes from this machine and names it as localhost or by a loopback address.
// This stops DNS rebinding: a page from elsewhere whose name resolves to this machine sends that name as Host. It also refuses reads by pages of other
// origins, because such a page could pass on what it reads.
func checkLocal(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if proxy := proxied(r); proxy != "" {
		return &holdfast.Error{Err: api.ErrForbidden, Message: "this request came through a proxy (it has the header " + proxy + "), but a server without keys only answers its own machine: create a key with 'holdfast keys create --scope admin --name NAME' and send it in the header Authorization"}
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if !isLocal(r) || !strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") && (err != nil || !at.Unmap().IsLoopback()) {
		return &holdfast.Error{Err: api.ErrForbidden, Message: "a server without keys only answers its own machine, as localhost or 127.0.0.1: create a key with 'holdfast keys create' to use it from elsewhere"}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return &holdfast.Error{Err: api.ErrForbidden, Message: "requests from pages of another origin are refused"}
	}
	return nil
}

// proxied returns the header that shows that a proxy passed the request on; empty if there is none. Behind a proxy on this machine every request would have
// a local address, and every caller would be an admin.
func proxied(r *http.Request) string {
	for name := range r.Header {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "X-Original-Forwarded-For", "X-Envoy-External-Address",
			"Client-Ip", "Forwarded-For", "X-Proxyuser-Ip", "Cdn-Loop":
			return name
		}
		if strings.HasPrefix(name, "X-Forwarded") {
			return name
		}
	}
	return ""
}

// HTTP makes an http.Server for this server, with limits on the time and size of requests. Call Drain before it is shut down, and Close after.
func (s *Server) HTTP(addr string) *http.Server {
	idle := &idleConns{most: s.cfg.Limits.Idle}
	web := &http.Server{
		Addr: addr, Handler: s, ConnState: idle.changed, DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: logOf(s.cfg.Log),
	}
	web.RegisterOnShutdown(s.close) // requests that wait or stream must end, or shutdown would wait for them
	return web
}
