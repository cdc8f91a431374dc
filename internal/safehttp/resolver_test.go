package safehttp

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestAFailedLookupDoesNotRevealTheResolver(t *testing.T) {
	for _, lookup := range []net.DNSError{
		{Err: "no such host", Name: "x.example", Server: "10.255.255.53:53", IsNotFound: true},
		{Err: "read udp 10.0.0.2:1->10.255.255.53:53: i/o timeout", Name: "x.example", Server: "10.255.255.53:53", IsTimeout: true},
		{Err: "server misbehaving", Name: "x.example", Server: "10.255.255.53:53", IsTemporary: true},
	} {
		err := withoutResolver(&net.OpError{Op: "dial", Net: "tcp", Err: &lookup})
		told := (*net.DNSError)(nil)
		if strings.Contains(err.Error(), "10.") || !errors.As(err, &told) || told.IsNotFound != lookup.IsNotFound || told.Timeout() != lookup.Timeout() {
			t.Errorf("%v", err)
		}
	}
}
