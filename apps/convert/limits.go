package main

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/holdfastdev/holdfast/internal/limit"
)

// One session or key may use a quarter of a shared limit, one address half of it: several people can share an address.
const (
	ownerShare    = 4
	addressShare  = 2
	addressFactor = 4 // an address may send this many times the uploads per minute of one session

)

// Answers to requests over a limit, and to requests for another host name.
var (
	tooManyOfOwner = apiError{code: codeUnknown, status: http.StatusTooManyRequests, line: "You have too many uploads in progress. Please try again when some of them have finished.", after: 5 * time.Second}
	tooManyUploads = apiError{code: codeUnknown, status: http.StatusTooManyRequests, line: "Too many uploads in a short time. Please try again in a minute.", after: time.Minute}
	tooManyStreams = apiError{code: codeUnknown, status: http.StatusTooManyRequests, line: "Too many pages are open. Please close some and try again.", after: 5 * time.Second}
	tooManyBadKeys = apiError{code: codeForbidden, status: http.StatusTooManyRequests, line: "Too many requests with an invalid API key came from this address. Check the key and try again later.", after: 2 * time.Second}
	otherHost      = apiError{code: codeForbidden, status: http.StatusMisdirectedRequest, line: "This site does not serve that host name. If it should, set HOSTS to the name that visitors use."}
)

// newRates limits a name to a number of operations per minute. They may come all at once.
func newRates(perMinute int) *limit.Rates {
	return &limit.Rates{Burst: perMinute, Every: time.Minute / time.Duration(perMinute)}
}

// admitUpload counts an upload of an owner from an address, or refuses it. The caller calls release when the upload is over.
func (a *app) admitUpload(owner, remote string) (release func(), err error) {
	from := limit.Network(remote)
	if a.perOwner.Exhausted(owner) || a.perAddress.Exhausted(from) {
		return nil, tooManyUploads
	}
	end, ok := a.uploading.Join(limit.Share{Name: "all", Most: a.set.MaxUploads})
	if !ok {
		return nil, tooBusy
	}
	endOne, ok := a.uploading.Join(shares(a.set.MaxUploads, owner, from)...)
	if !ok {
		end()
		return nil, tooManyOfOwner
	}
	a.perOwner.Allow(owner)
	a.perAddress.Allow(from)
	return func() { endOne(); end() }, nil
}

func shares(all int, owner string, from netip.Addr) []limit.Share {
	return []limit.Share{{Name: "owner " + owner, Most: max(1, all/ownerShare)}, {Name: "address " + from.String(), Most: max(1, all/addressShare)}}
}
