package fetch_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch/hostiletest"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// hostile is the times of the hostile tests: long enough for a busy machine, and far below those of production.
var hostile = settings{limits: fetch.Limits{Size: 8 << 20, MinSpeed: 1000, MinSpan: 3 * time.Second, Redirects: 3}, header: 10 * time.Second}

// tell downloads from a source and compares what is stored.
func (s *scene) tell(l hostiletest.Source, name, address string) bool {
	result, err := s.Fetch(s.Context(), fetch.Request{Name: name, URL: address + "/file?token=secret", Expect: l.Expect, Attempt: 2})
	right := codeOf(err) == l.Code
	if !right {
		s.Errorf("%s: %s instead of %q: %v", l.Name, codeOf(err), l.Code, err)
	}
	if err != nil {
		v := verdict(err)
		if final := v.To == holdfast.Failed; final != l.Final {
			s.Errorf("%s: final is %v: %v", l.Name, final, err)
		}
		if v.Failure.Context["attempt"] != "2" || v.Failure.Context["proxy"] != "direct" || strings.Contains(err.Error(), "secret") {
			s.Errorf("%s: %+v, %v", l.Name, v.Failure.Context, err)
		}
		_, found := s.spool.Find(name)
		return right && found != nil
	}
	text, err := os.ReadFile(result.File.Path)
	if err != nil || string(text) != l.Body || result.File.SHA256 != hostiletest.Sum(l.Body) || result.File.Size != int64(len(l.Body)) {
		s.Errorf("%s: %d bytes were stored (%v)", l.Name, len(text), err)
		return false
	}
	return right && s.spool.Remove(name) == nil
}

// nothingElse checks that failed downloads left nothing.
func (s *scene) nothingElse() {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	if u := s.spool.Usage(); err != nil || len(entries) > 1 || u.Bytes != 0 || u.Files != 0 {
		s.Errorf("%d files are left, %+v", len(entries), u)
	}
}

// A thousand faulty transfers (a share of them in make test), no wrong object, each with the right code. Each fault occurs at least three times.
func TestManyFaultyTransfersStoreNoWrongObject(t *testing.T) {
	s := newScene(t, hostile)
	list := hostiletest.Sources()
	var addresses []string
	for _, l := range list {
		addresses = append(addresses, hostiletest.Start(t, l.Answer))
	}
	var wrong atomic.Int64
	var all sync.WaitGroup
	slots := make(chan struct{}, 200)
	for n := range soak.Pick("faulty transfers", 200, 1000) {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			at := n % len(list)
			if !s.tell(list[at], fmt.Sprintf("job-%d", n), addresses[at]) {
				wrong.Add(1)
			}
		})
	}
	all.Wait()
	s.nothingElse()
	if wrong.Load() > 0 {
		t.Errorf("%d transfers ended otherwise than expected", wrong.Load())
	}
}
