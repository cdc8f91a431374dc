package httpjob

import (
	"net"
	"testing"

	"github.com/holdfastdev/holdfast/safehttp"
)

// Which names exist inside is nobody's business: a name that does not exist ends as one that leads inside does.
func TestAnUnknownNameEndsLikeOneThatLeadsInside(t *testing.T) {
	unknown := unreached(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "db.internal", IsNotFound: true}}, &secrets{}, false)
	inside := unreached(safehttp.ErrBlocked, &secrets{}, false)
	if unknown.Error() != inside.Error() {
		t.Errorf("unknown: %v; inside: %v", unknown, inside)
	}
}
