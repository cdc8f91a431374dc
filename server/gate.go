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
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/apikey"
)

// admit finds out who asks and whether they may ask this at all, now. What the request holds of the limits is given back when it was answered.
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
		hurry(w, r, true)
	}
	return caller, err
}

// identify finds out who asks. Only the header Authorization counts: what is in a URL is in too many logs, and what is in a cookie is sent by pages that the
// caller never meant to trust.
func (s *Server) identify(r *http.Request) (Caller, error) {
	given := r.Header["Authorization"]
	switch {
	case len(given) == 0:
		return s.keyless(r.Context())
	case len(given) > 1:
		return Caller{}, unauthenticated("give the header Authorization once")
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Caller{}, unauthenticated("give a key in the header Authorization: Bearer hf_...")
	}
	return s.Know(r.Context(), r.RemoteAddr, text)
}

// keyless is a caller without a key: an admin while the server is open, and otherwise a stranger.
func (s *Server) keyless(ctx context.Context) (Caller, error) {
	open := s.cfg.Open
	if open && !s.cfg.IgnoreKeys {
		var err error
		if open, err = s.keys.unlocked(ctx); err != nil {
			return Caller{}, err
		}
	}
	if !open {
		return Caller{}, unauthenticated("give a key in the header Authorization: Bearer hf_...; 'holdfast keys create' makes one")
	}
	return Caller{Scope: apikey.Admin}, nil
}

// asksNoKey reports whether callers without a key may be let in: then it matters where they come from.
func (s *Server) asksNoKey() bool { return s.cfg.Open && (s.cfg.IgnoreKeys || !s.keys.locked.Load()) }

func (s *Server) saysLocked() {
	if s.cfg.Open && !s.cfg.IgnoreKeys {
		s.cfg.Log.Info("a key was made: from now on every caller needs one", "event", "locked")
	}
}

// may reports whether the caller may ask this at all, whatever it is about.
func (c Caller) may(to mounted) error {
	if !c.Scope.Allows(to.scope) && (to.also == "" || !c.Scope.Allows(to.also)) {
		needed := string(to.scope)
		if to.also != "" {
			needed += " or " + string(to.also)
		}
		return &holdfast.Error{Kind: api.ErrForbidden, Message: "this key is of scope " + string(c.Scope) + ", and this needs one of scope " + needed}
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

var errBound = &holdfast.Error{Kind: api.ErrForbidden, Message: "this key is bound to an owner, and may ask only about what is the owner's"}

// own finds out whether what is asked about is the caller's, if it is bound to an owner. What is somebody else's does not exist.
func (s *Server) own(ctx context.Context, c Caller, in any) error {
	if c.Owner == "" {
		return nil
	}
	named := false
	if about, ok := in.(api.JobNamer); ok {
		named = true
		if err := s.ownJob(ctx, c, about.JobID()); err != nil {
			return err
		}
	}
	if about, ok := in.(api.GroupNamer); ok {
		named = true
		if err := s.ownGroup(ctx, c, about.GroupID()); err != nil {
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
			if err := s.ownGroup(ctx, c, group); err != nil {
				return err
			}
		}
	}
	if !named {
		return errBound
	}
	return nil
}

// ownJob refuses a job that is not the caller's in the words in which an unknown one is refused.
func (s *Server) ownJob(ctx context.Context, c Caller, id holdfast.ID) error {
	job, err := s.cfg.Desk.Job(ctx, id)
	if errors.Is(err, holdfast.ErrPurged) {
		stones, _, lost := s.cfg.Desk.Tombstones(ctx, holdfast.TombstoneFilter{Job: id, Limit: 1})
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

// ownGroup does the same for a group.
func (s *Server) ownGroup(ctx context.Context, c Caller, id holdfast.ID) error {
	if c.Owner == "" {
		return nil
	}
	group, err := s.cfg.Store.Group(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) || err == nil && group.Owner != c.Owner {
		return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is no group " + id.String() + ": check the id"}
	}
	return err
}

func noSuchJob(id holdfast.ID) error {
	return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is no job " + id.String() + ": check the id"}
}

// sane refuses what no honest program sends: before anybody is asked who they are.
func (s *Server) sane(r *http.Request) error {
	at := r.URL.EscapedPath()
	clean := path.Clean(at)
	if strings.HasSuffix(at, "/") && clean != "/" {
		clean += "/"
	}
	switch {
	case !strings.HasPrefix(at, "/") || len(at) > 4096 || len(r.URL.RawQuery) > 16384:
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the address of the request is too long, or none of a path and a query"}
	case at != clean || !utf8.ValidString(r.URL.Path) || strings.ContainsFunc(r.URL.Path, unicode.IsControl):
		return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is nothing at this path: write it without empty parts, dots and control characters"}
	}
	if s.asksNoKey() {
		if err := local(r); err != nil {
			return err
		}
	}
	if err := s.origins.Check(r); err != nil {
		return &holdfast.Error{Kind: api.ErrForbidden, Message: "a page of another origin may not ask this: ask from a program, or from a page of this server", Cause: err}
	}
	return nil
}

// local lets in, where no key is asked for, who is on this machine and calls it by a name of its own. A page from elsewhere that found the way here by a name
// that it made point here is not let in, nor one that only asks: what it reads would be its own.
func local(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if proxy := proxied(r); proxy != "" {
		return &holdfast.Error{Kind: api.ErrForbidden, Message: "this request came through a proxy (it has the header " + proxy + "), and without keys this server answers only its own machine: make a key with 'holdfast keys create --scope admin --name NAME', and give it in the header Authorization"}
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if !isLocal(r) || !strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") && (err != nil || !at.Unmap().IsLoopback()) {
		return &holdfast.Error{Kind: api.ErrForbidden, Message: "without keys this server answers only on its own machine, as localhost or 127.0.0.1: start it with keys to reach it otherwise"}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return &holdfast.Error{Kind: api.ErrForbidden, Message: "a page of another origin may not ask this"}
	}
	return nil
}

// proxied is the header by which a proxy shows that it passed the request on; empty: none does. A proxy on this machine would make its own address the
// caller's, and every caller an admin.
func proxied(r *http.Request) string {
	for name := range r.Header {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "X-Original-Forwarded-For", "X-Envoy-External-Address":
			return name
		}
		if strings.HasPrefix(name, "X-Forwarded") {
			return name
		}
	}
	return ""
}

// HTTP makes the http.Server of this server, with limits on how long and how much anybody may talk before being known. Whoever starts it calls
// Drain before it is shut down, and Close after.
func (s *Server) HTTP(addr string) *http.Server {
	quiet := &quiet{most: s.cfg.Limits.Idle}
	web := &http.Server{
		Addr: addr, Handler: s, ConnState: quiet.changed, DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: logOf(s.cfg.Log),
	}
	web.RegisterOnShutdown(s.close) // those who wait or listen are sent away: it would wait for them
	return web
}
