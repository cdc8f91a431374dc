package httpjob

import (
	"net"
	"testing"

	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// A client must not find out which internal names exist: an unknown name gives the same error as one with a blocked address.
func TestAnUnknownNameFailsLikeOneWithABlockedAddress(t *testing.T) {
	unknown := noAnswer(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "db.internal", IsNotFound: true}}, &secrets{}, false)
	blocked := noAnswer(safehttp.ErrBlocked, &secrets{}, false)
	if unknown.Error() != blocked.Error() {
		t.Errorf("unknown: %v; blocked: %v", unknown, blocked)
	}
}
