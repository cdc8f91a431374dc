package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfastdev/holdfast/internal/api"
)

// A badRequest is a request that is not valid or not allowed. It must be answered with a problem.
type badRequest struct {
	method, path, body string
	headers            []string
}

func (s *gateScene) refuses(asks []badRequest) {
	s.t.Helper()
	before := s.facts()
	for _, b := range asks {
		s.srv.badKeys = newBadKeyLimit()
		a := s.ask("admin", b.method, b.path, b.body, b.headers...)
		if why := notAProblem(a, b.method); why != "" {
			s.t.Errorf("%s %.120q %q %.120q: %s: %d %s %v", b.method, b.path, b.headers, b.body, why, a.status, a.body, a.err)
		}
	}
	if after := s.facts(); after != before {
		s.t.Errorf("something was changed: before\n%s\nafter\n%s", before, after)
	}
	if log := s.log.String(); strings.Contains(log, "request_panicked") || strings.Contains(log, "request_failed") {
		s.t.Error("there was a panic or a fault:", log)
	}
}

// notAProblem returns what is wrong with an answer that should be a complete problem; empty if nothing is.
func notAProblem(a answerSeen, method string) string {
	if a.err != nil || a.status < 400 || a.status >= 500 {
		return "it was not refused"
	}
	if a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("X-Request-Id") == "" {
		return "it is no problem by RFC 9457"
	}
	if method == http.MethodHead {
		return ""
	}
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if json.Unmarshal([]byte(a.body), &p) != nil || p.Status != a.status || p.Code == "" || p.Title == "" || p.Detail == "" || p.Type != "/problems/"+p.Code {
		return "it lacks a status, a code or a sentence"
	}
	if page, ok := api.ProblemPage(p.Code); !ok || !strings.Contains(page, p.Title) {
		return "its type leads nowhere"
	}
	if strings.ContainsFunc(p.Detail, unicode.IsControl) || len(p.Detail) > 500 || strings.Contains(p.Detail, "goroutine") || strings.Contains(p.Detail, ".go:") {
		return "its sentence is not one"
	}
	return ""
}

// The tables, by what is wrong.
var badTables = map[string]func() []badRequest{
	"parameters": badParameters, "drafts": badDrafts, "JSON": badJSON, "paths": badPaths, "keys": badKeys, "methods": badMethods, "bodies": badBodies, "lists": badLists,
}

func TestBadInputIsRefusedWithAProblem(t *testing.T) {
	for name, table := range badTables {
		t.Run(name, func(t *testing.T) {
			s := newGateScene(t)
			s.job("bob")
			s.refuses(table())
			if a := s.ask("admin", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
				t.Error("the server does not answer any more:", a.status, a.body)
			}
		})
	}
}

func TestThereAreAtLeastFourHundredBadInputs(t *testing.T) {
	n := len(badFrames())
	for _, table := range badTables {
		n += len(table())
	}
	if n < 400 {
		t.Errorf("%d bad inputs", n)
	}
}

func badParameters() (all []badRequest) {
	get := func(query string) { all = append(all, badRequest{method: "GET", path: "/v1/jobs?" + query}) }
	for _, n := range []string{"-1", "201", "1000000000", "1e9", "9223372036854775808", "-9223372036854775809", "0x10", "1_000", "ten", "1.0", "", "%20", "1%00", "+5", "١", "NaN", "5;6", "5,6", "null", "true"} {
		if n != "" && n != "+5" {
			get("limit=" + n)
		}
		if n != "" && n != "-1" && n != "201" && n != "1000000000" && n != "+5" {
			get("generation=" + n)
		}
	}
	for _, id := range []string{"1", "x", "00000000-0000-0000-0000-00000000000", "01890a5d-ac96-774b-bcce-b302099a8057x", "01890a5dac96774bbcceb302099a8057", "{01890a5d-ac96-774b-bcce-b302099a8057}", "01890a5d-ac96-774b-bcce-b302099a805g", "..%2f..%2fetc", "%00", "'%20OR%201=1", "%F0%9F%92%A9", strings.Repeat("a", 3000)} {
		get("group=" + id)
		get("redrive=" + id)
	}
	for _, d := range []string{"1", "-1h", "1d", "1%20h", "h", "999999h59m999999999s", "9999999999h", "1e3s", "infinity", "NaN", "2026-01-01", "%001s", "1h1", "''", "100000000000000000000h", "876001h"} {
		get("older_than=" + d)
		get("younger_than=" + d)
	}
	for _, name := range []string{"kind", "queue", "owner", "tag", "dependency", "code", "fingerprint", "cursor"} {
		for _, text := range []string{"%00", "a%0Ab", "a%0D%0Ab", "%1b[31m", "%7f", "%ff", "%c3%28", "%ed%a0%80", "%C2%85", strings.Repeat("x", 2049)} {
			get(name + "=" + text)
		}
		get(name + "=a&" + name + "=b")
	}
	for _, query := range []string{"nope=1", "LIMIT=1", "limit[]=1", "limit=1&limit=2", "%zz=1", "kind=%", "kind=%2", "kind=%zz", "a;b", "=1", "&&x", "%00=1", "state=queued;drop", "key=hf_x", "access_token=x", "kind[$ne]=x", strings.Repeat("a", 16385)} {
		get(query)
	}
	for _, state := range []string{"x", "Queued", "QUEUED", "queued,failed", "queued%20", "%00", "null", "0", "*", "dead", "' OR 1=1--"} {
		get("state=" + strings.ReplaceAll(state, " ", "%20"))
	}
	for _, cursor := range []string{"x", "0", "-1", "AAAA", "%3D%3D", "bm90IGEgY3Vyc29y", "' OR 1=1", "1e5", "{}", "[]", "../x"} {
		get("cursor=" + strings.ReplaceAll(cursor, " ", "%20"))
	}
	return all
}

func badDrafts() (all []badRequest) {
	post := func(body string) {
		all = append(all, badRequest{"POST", "/v1/jobs", body, []string{"Content-Type", "application/json"}})
	}
	for _, member := range []string{"state", "token", "attempts", "failures", "crashes", "generation", "worker", "lease_until", "created_at", "finished_at", "result", "last_failure", "progress", "as_of", "due_at", "waiting", "cancelling", "discarded", "releases", "started_at", "proven", "Kind", "KIND", "kind ", "__proto__", "constructor", "$ref", ""} {
		value, _ := json.Marshal(member)
		post(`{"kind":"mail",` + string(value) + `:"complete"}`)
	}
	for _, kind := range []string{``, ` `, `a b`, `ä`, `a\u0000`, `a\n`, `<script>`, `a'b`, `a\"b`, `\ud83d\ude00`, strings.Repeat("k", 129), `\u202e`, `a;b`, `a\\b`} {
		post(`{"kind":"` + kind + `"}`)
		post(`{"kind":"mail","queue":"` + kind + `x "}`)
	}
	for _, field := range []string{"owner", "unique_key", "idempotency_key", "trace"} {
		for _, text := range []string{`\u0000`, `\n`, `\u001b[0m`, `\u007f`, strings.Repeat("x", 256)} {
			post(`{"kind":"mail","` + field + `":"` + text + `"}`)
		}
		for _, value := range []string{"1", "true", "{}", "[]", `["a"]`} {
			post(`{"kind":"mail","` + field + `":` + value + `}`)
		}
	}
	for _, d := range []string{`"-1s"`, `1`, `"1"`, `"1d"`, `""`, `"876001h"`, `"9999999999h"`, `{}`, `true`, `"1h\u0000"`, `1e400`, `"NaN"`} {
		for _, field := range []string{"delay", "expire_in", "retry_within"} {
			post(`{"kind":"mail","` + field + `":` + d + `}`)
		}
	}
	for _, at := range []string{`"yesterday"`, `0`, `"2026-13-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"0001-01-01T00:00:01Z"`, `"2026-01-01"`, `""`, `{}`, `"2026-01-01T00:00:00+99:00"`} {
		post(`{"kind":"mail","run_at":` + at + `}`)
		post(`{"kind":"mail","expire_at":` + at + `}`)
	}
	for _, n := range []string{`-1`, `1.5`, `1e30`, `9223372036854775808`, `"3"`, `2147483648`, `{}`, `true`, `-0.1`} {
		post(`{"kind":"mail","max_attempts":` + n + `}`)
	}
	for _, n := range []string{`32768`, `-32769`, `1.5`, `"1"`, `1e9`, `[]`} {
		post(`{"kind":"mail","priority":` + n + `}`)
	}
	for _, tags := range []string{`"a"`, `[1]`, `[""]`, `["\u0000"]`, `[["a"]]`, `[` + strings.Repeat(`"t",`, 32) + `"t"]`, `{"a":1}`, `["` + strings.Repeat("x", 256) + `"]`} {
		post(`{"kind":"mail","tags":` + tags + `}`)
	}
	for _, rest := range []string{`"group":"x"`, `"group":1`, `"after":["01890a5d-ac96-774b-bcce-b302099a8057"]`, `"after":"x"`, `"id":"x"`, `"id":1`, `"delay":"1s","run_at":"2027-01-01T00:00:00Z"`, `"group":"01890a5d-ac96-774b-bcce-b302099a8057"`,
		`"unique_done":"yes"`, `"after_all":1`, `"dependency":"a b"`, `"dependency":"\u0000"`} {
		post(`{"kind":"mail",` + rest + `}`)
	}
	return all
}
