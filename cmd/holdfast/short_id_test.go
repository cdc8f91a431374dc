package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestAShortIDNamesTheOneThatHasIt(t *testing.T) {
	address, failed, waiting := newTestStore(t)
	url := startTestServer(t, address)
	end, whole := failed.String()[28:], waiting.String()
	for _, s := range []step{
		{"job " + end, exitOK, failed.String()},
		{"job …" + end, exitOK, failed.String()},
		{"story " + strings.ToUpper(whole[:35]), exitOK, "queued"},
		{"explain " + whole[:34], exitOK, whole},
		{"job " + whole[:6], exitUsage, ""}, // ambiguous: all were created within a minute
		{"job " + end[:3], exitUsage, ""},   // too short
		{"job ffffffff-ffff", exitNotFound, ""},
		{"retry zzzzzzzz --actor ada", exitUsage, ""},
		{"edit " + whole[24:] + " --priority 3 --actor ada", exitOK, whole},
		{"retry " + end + " --actor ada", exitOK, "queued again"},
		{"redrive", exitOK, "no redrives"},
	} {
		for _, where := range []string{"--store " + address, "--server " + url} {
			if strings.HasPrefix(s.line, "retry "+end) && strings.HasPrefix(where, "--server") {
				continue // already queued
			}
			code, out, stderr := command(t, append(splitArgs(s.line), splitArgs(where)...)...)
			if code != s.code || !strings.Contains(out, s.says) {
				t.Errorf("holdfast %s: exit %d, want %d with %q\n%s%s", s.line, code, s.code, s.says, out, stderr)
			}
		}
	}
}

func TestAShortFingerprintNamesTheOneErrorGroup(t *testing.T) {
	address, _, _ := newTestStore(t)
	jobs, err := anystore.Open(t.Context(), address)
	ok(t, err)
	for _, print := range []string{"abcdef0123", "abcdef4567"} {
		_, err := jobs.Enqueue(t.Context(), []holdfast.Draft{{Kind: "mail", Queue: print}})
		ok(t, err)
		leases, err := jobs.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{print}, Limit: 1, Start: 1, Lease: 1e10})
		ok(t, err)
		_, err = jobs.Settle(t.Context(), []store.Settlement{{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 1,
			Failure: &holdfast.Failure{Code: "GW_5XX", Category: "dependency", Message: "down", Fingerprint: print}}})
		ok(t, err)
	}
	ok(t, jobs.Close())
	for _, s := range []step{
		{"errors show abcdef0", exitOK, "abcdef0123"}, {"errors ack abcdef4 --actor ada", exitOK, "acknowledged"}, {"errors show f1", exitOK, "f1"},
		{"errors show abcdef", exitUsage, ""}, {"errors show abcdef9", exitNotFound, ""},
	} {
		code, out, stderr := command(t, append(splitArgs(s.line), "--store", address)...)
		if code != s.code || !strings.Contains(out, s.says) {
			t.Errorf("holdfast %s: exit %d, want %d with %q\n%s%s", s.line, code, s.code, s.says, out, stderr)
		}
	}
}

func TestShortIDsAreSearchedAmongABoundedNumber(t *testing.T) {
	asked := 0
	id := func(n int) string { return fmt.Sprintf("%08x-0000-7000-8000-%012x", 0xffffff-n, n) }
	page := func(string) (names []string, next string, err error) {
		for range 200 {
			names = append(names, id(asked))
			asked++
		}
		return names, "more", nil
	}
	for _, c := range []struct {
		text   string
		want   string
		looked int
	}{
		{id(300)[:13], id(300), 400},         // ids come in order: those that begin so are next to each other
		{id(300)[24:], id(300), maxSearched}, // the end alone is long enough
		{id(300)[28:], "", maxSearched},      // older ones may end so too
		{id(maxSearched + 5)[24:], "", maxSearched},
	} {
		asked = 0
		got, err := fullID("job", c.text, page)
		if c.want == "" && err == nil || c.want != "" && (err != nil || got.String() != c.want) || asked != c.looked {
			t.Errorf("%s: %v, %v after %d, want %q after %d", c.text, got, err, asked, c.want, c.looked)
		}
	}
}
