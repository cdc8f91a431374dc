package main

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/internal/limit"
)

// Of what all share, one session or key may have this part at once, and one address that part: several people can be behind one address.
const (
	ownerShare   = 4
	addressShare = 2
	addressRates = 4 // times as many uploads a minute as one session

	badKeysPerMinute = 30   // of one address
	mostStreams      = 1000 // of events, of all visitors; the feed has no more
)

// What visitors are answered who ask for too much, or by a name that is not this site's.
var (
	crowdedByOne   = fault{code: codeUnknown, status: http.StatusTooManyRequests, line: "You have too many uploads under way. Try again when some have ended.", after: 5 * time.Second}
	tooManyUploads = fault{code: codeUnknown, status: http.StatusTooManyRequests, line: "Too many uploads in a short time. Try again in a minute.", after: time.Minute}
	tooManyStreams = fault{code: codeUnknown, status: http.StatusTooManyRequests, line: "Too many streams of events are open. Close some first.", after: 5 * time.Second}
	tooManyBadKeys = fault{code: codeForbidden, status: http.StatusTooManyRequests, line: "Too many bad keys from this address: see which key is sent, and try again later.", after: 2 * time.Second}
	otherHost      = fault{code: codeForbidden, status: http.StatusMisdirectedRequest, line: "This site is not known by that host name. Where it is meant to be, set HOSTS to the name that visitors use."}
)

// newRates lets a name do something so many times a minute, all of them at once if it likes.
func newRates(perMinute int) *limit.Rates {
	return &limit.Rates{Burst: perMinute, Every: time.Minute / time.Duration(perMinute)}
}

// mayUpload counts an upload of an owner from an address. The caller calls leave when the upload is over.
func (a *app) mayUpload(owner, remote string) (leave func(), err error) {
	from := limit.Network(remote)
	if a.perOwner.Exhausted(owner) || a.perAddress.Exhausted(from) {
		return nil, tooManyUploads
	}
	end, ok := a.uploading.Join(limit.Share{Name: "all", Most: a.set.MaxUploads})
	if !ok {
		return nil, crowded
	}
	endOne, ok := a.uploading.Join(shares(a.set.MaxUploads, owner, from)...)
	if !ok {
		end()
		return nil, crowdedByOne
	}
	a.perOwner.Allow(owner)
	a.perAddress.Allow(from)
	return func() { endOne(); end() }, nil
}

// mayFollow counts a stream of events of an owner from an address.
func (a *app) mayFollow(owner, remote string) (leave func(), err error) {
	leave, ok := a.following.Join(shares(mostStreams, owner, limit.Network(remote))...)
	if !ok {
		return nil, tooManyStreams
	}
	return leave, nil
}

func shares(all int, owner string, from netip.Addr) []limit.Share {
	return []limit.Share{{Name: "owner " + owner, Most: max(1, all/ownerShare)}, {Name: "address " + from.String(), Most: max(1, all/addressShare)}}
}

// knownHost reports whether a request names this site by a name that it has. A page of another site whose name was made to point here does not.
func (a *app) knownHost(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	at, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && at.Unmap().IsLoopback() {
		return true
	}
	if len(a.set.Hosts) > 0 {
		return slices.Contains(a.set.Hosts, host)
	}
	return !isLoopback(a.set.Addr)
}
