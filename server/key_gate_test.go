package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

func TestAKeyIsAcceptedOnlyInTheAuthorizationHeader(t *testing.T) {
	s := newGateScene(t)
	good := s.keys["admin"]
	for name, headers := range map[string][]string{
		"none": nil, "basic": {"Authorization", "Basic " + good}, "bare": {"Authorization", good}, "empty": {"Authorization", "Bearer "},
		"cookie": {"Cookie", "authorization=Bearer " + good + "; key=" + good}, "its own header": {"X-Api-Key", good}, "proxy": {"Proxy-Authorization", "Bearer " + good},
		"a shortened key": {"Authorization", "Bearer " + good[:len(good)-1]}, "one with more": {"Authorization", "Bearer " + good + "0"}, "two": {"Authorization", "Bearer " + good + " " + good},
	} {
		if a := s.ask("", "GET", "/v1/jobs", "", headers...); a.status != http.StatusUnauthorized || a.code() != "unauthenticated" || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for _, query := range []string{"key", "access_token", "api_key", "authorization"} {
		if a := s.ask("", "GET", "/v1/jobs?"+query+"="+good, ""); a.status != http.StatusUnauthorized {
			t.Errorf("?%s: %d %s", query, a.status, a.body)
		}
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		if a := s.ask("", "GET", "/v1/jobs", "", "Authorization", scheme+" "+good); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", scheme, a.status, a.body)
		}
	}
}

func TestAWrongKeyAnswersLikeAnUnknownOne(t *testing.T) {
	s := newGateScene(t)
	id, _, _ := apikey.Parse(s.keys["admin"])
	_, other := apikey.New(apikey.Request{Name: "x", Scope: apikey.Admin}, time.Now())
	otherID, _, _ := apikey.Parse(other)
	s.keys["unknown"] = other
	body := strings.Replace(other[:strings.LastIndex(other, "_")], otherID, id, 1)
	s.keys["wrong"] = body + "_" + checkOf(body)
	if parsed, _, err := apikey.Parse(s.keys["wrong"]); err != nil || parsed != id {
		t.Fatal(parsed, err)
	}
	unknown, wrong := s.ask("unknown", "GET", "/v1/jobs", ""), s.ask("wrong", "GET", "/v1/jobs", "")
	if unknown.status != http.StatusUnauthorized || unknown.whole() != wrong.whole() {
		t.Errorf("unknown:\n%s\nwrong:\n%s", unknown.whole(), wrong.whole())
	}
}

func TestANewKeyWorksAtOnceAndARevokedOneDoesNot(t *testing.T) {
	s := newGateScene(t)
	for range 3 {
		text := s.makeKey(apikey.Request{Name: "fresh", Scope: apikey.Viewer})
		s.keys["fresh"] = text
		if a := s.ask("fresh", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
			t.Fatal(a.status, a.body)
		}
		id, _, _ := apikey.Parse(text)
		if err := s.operator.RevokeKey(t.Context(), id, me); err != nil {
			t.Fatal(err)
		}
		revoked := time.Now()
		for {
			asked := time.Now()
			a := s.ask("fresh", "GET", "/v1/jobs", "")
			if a.status == http.StatusUnauthorized {
				break
			}
			if asked.Sub(revoked) > time.Second {
				t.Fatalf("it still opens %v after it was revoked", asked.Sub(revoked))
			}
		}
	}
	if a := s.ask("expired", "GET", "/v1/jobs", ""); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "expired") {
		t.Error(a.status, a.body)
	}
}

func TestTheUseOfAKeyIsRecordedOnceAMinute(t *testing.T) {
	s := newGateScene(t)
	used := func() (k apikey.Key, version int) {
		records, err := s.store.Records(t.Context(), apikey.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			var one apikey.Key
			if json.Unmarshal(r.Body, &one) == nil && one.Name == "viewer" {
				return one, r.Version
			}
		}
		return k, 0
	}
	for range 20 {
		s.ask("viewer", "GET", "/v1/jobs", "")
	}
	eventually(t, "the use is written down", func() bool { k, _ := used(); return !k.UsedAt.IsZero() })
	for range 20 {
		s.ask("viewer", "GET", "/v1/jobs", "")
	}
	if _, version := used(); version != 2 {
		t.Errorf("it was kept %d times in a minute", version-1)
	}
}

func TestBadKeysAreThrottledAndBlockNoGoodKey(t *testing.T) {
	s := newGateScene(t)
	last := 0
	for range 40 {
		last = s.ask("malformed", "GET", "/v1/jobs", "").status
	}
	a := s.ask("malformed", "GET", "/v1/jobs", "")
	if last != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Error(last, a.whole())
	}
	if a := s.ask("viewer", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
		t.Error("a good key from the same address:", a.status, a.body)
	}
}

// A blindStore fails to read records while blind is set.
type blindStore struct {
	store.Store
	blind atomic.Bool
	reads atomic.Int64
}

func (b *blindStore) Records(ctx context.Context, namespace string) ([]store.Record, error) {
	if b.blind.Load() {
		return nil, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "blind"}
	}
	b.reads.Add(1)
	return b.Store.Records(ctx, namespace)
}

func TestWithoutTheStoreNoKeyIsAcceptedFromAnOldRead(t *testing.T) {
	var blind *blindStore
	s := newGateScene(t, func(c *Config) { blind = &blindStore{Store: c.Store}; c.Store = blind })
	if a := s.ask("viewer", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
		t.Fatal(a.status, a.body)
	}
	blind.blind.Store(true)
	eventually(t, "the server says that it cannot know", func() bool {
		a := s.ask("viewer", "GET", "/v1/jobs", "")
		return a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
	})
	blind.blind.Store(false)
	eventually(t, "it sees again", func() bool { return s.ask("viewer", "GET", "/v1/jobs", "").status == http.StatusOK })
}

func TestUnknownKeysDoNotMultiplyStoreReads(t *testing.T) {
	var seen *blindStore
	s := newGateScene(t, func(c *Config) { seen = &blindStore{Store: c.Store}; c.Store = seen })
	begun, before := time.Now(), seen.reads.Load()
	for range 200 {
		_, s.keys["unknown"] = apikey.New(apikey.Request{Name: "x", Scope: apikey.Admin}, time.Now())
		s.ask("unknown", "GET", "/v1/jobs", "")
	}
	if reads, most := seen.reads.Load()-before, int64(time.Since(begun)/keysReadPause)+2; reads > most {
		t.Errorf("%d readings where %d are the most", reads, most)
	}
}
