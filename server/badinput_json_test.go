package server

import (
	"strings"
)

func badJSON() (all []badRequest) {
	post := func(body string) {
		all = append(all, badRequest{"POST", "/v1/jobs", body, []string{"Content-Type", "application/json"}})
	}
	for _, text := range []string{
		`{`, `}`, `[`, `]`, `{]`, `[}`, `"`, `'a'`, `{'kind':'mail'}`, `{kind:"mail"}`, `{"kind":"mail",}`, `{"kind":"mail"}}`, `{"kind":"mail"} x`, `{"kind":"mail"}{"kind":"mail"}`,
		`{"kind":"mail"} // x`, `{"kind":"mail"/**/}`, `{"kind" "mail"}`, `{"kind":}`, `{"kind":mail}`, `{:"mail"}`, `{"kind":"mail" "queue":"x"}`, `{"kind":"mail",,"queue":"x"}`,
		`nul`, `tru`, `True`, `None`, `undefined`, `NaN`, `Infinity`, `-`, `+1`, `01`, `1.`, `.5`, `1e`, `0x10`, `1_0`, `--1`, `1e999999`, `1`, `-1`, `"mail"`, `true`, `[]`, `[1]`, `[{}]`, `null`, `{}`, `"\u"`,
		"\xef\xbb\xbf" + `{"kind":"mail"}`, "\xff\xfe{\x00}\x00", "\x00", "{\"kind\":\"mail\x00\"}", "{\"kind\":\"ma\nil\"}", "{\"kind\":\"\x1f\"}", "{\"kind\":\"\xff\"}", "{\"kind\":\"\xc0\xaf\"}", "{\"kind\":\"\xed\xa0\x80\"}", "{\"\xff\":1}",
		`{"kind":"\ud800"}`, `{"kind":"\udc00\ud800"}`, `{"kind":"\ud800x"}`, `{"\ud800":1,"kind":"mail"}`, `{"kind":"\u12"}`, `{"kind":"\x41"}`, `{"kind":"\'"}`, `{"kind":"mail\"}`, `{"kind":"mail","args":"\ud800"}`, `{"kind":"mail","args":{"\udfff":1}}`,
		`{"kind":"mail","kind":"mail"}`, `{"kind":"mail","kind":"other"}`, `{"kind":"mail","\u006bind":"other"}`, `{"kind":"mail","args":{"a":1,"a":2}}`, `{"kind":"mail","args":{"a":{"b":1,"b":1}}}`, `{"kind":"mail","args":[{"a":1,"a":2}]}`,
		`{"kind":{"a":"mail"}}`, `{"kind":["mail"]}`, `{"kind":1}`, `{"kind":true}`, `{"kind":"mail","args":}`, `{"kind":"mail","args":{]}`, `{"kind":"mail","args":nope}`, `{"kind":"mail","args":01}`, `{"kind":"mail","args":'x'}`,
		`{"kind":"mail","nope":1}`, `{"kind":"mail","Args":{}}`, `{"kind":"mail","args ":{}}`, `<xml/>`, `kind=mail&queue=x`, `--boundary`, `{"kind":"mail","args":[1,2,3`, "\u2028", "\u00a0{}", `{"kind":"mail"}` + "\x00", `{"kind":"mail"}` + "\xff",
	} {
		post(text)
	}
	for _, n := range []int{65, 100, 1000, 100_000} {
		post(`{"kind":"mail","args":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`)
		post(`{"kind":"mail","args":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + `}`)
		post(strings.Repeat("[", n))
		post(strings.Repeat(`{"a":`, n))
	}
	post(`{"kind":"mail","args":"` + strings.Repeat("x", 1<<20) + `"}`)
	post(`{"kind":"mail","` + strings.Repeat("m", 100_000) + `":1}`)
	post(`{"kind":"mail","max_attempts":` + strings.Repeat("9", 100_000) + `}`)
	post(`{"kind":"mail","tags":[` + strings.Repeat(`"a",`, 100_000) + `"a"]}`)
	return all
}

func badPaths() (all []badRequest) {
	for _, path := range []string{
		"/v1", "/v1/", "/V1/jobs", "/v1/Jobs", "/v1/jobs/", "/v1//jobs", "//v1/jobs", "/v1/jobs//", "/v1/./jobs", "/v1/../v1/jobs", "/v1/jobs/..", "/v1/jobs/.", "/../../etc/passwd",
		"/v1/%2e%2e/jobs", "/v1/%2e/jobs", "/%2e%2e/%2e%2e/etc/passwd", "/v1/jobs/%2e%2e", "/v1/jobs/%2e%2e%2f%2e%2e", "/v1/jobs/..%2f..%2fetc%2fpasswd", "/v1%2fjobs", "/v1/jobs%2f", "/v1/jobs%00", "/v1/jobs/%00", "/v1/jobs%0a", "/v1/jobs/%0d%0aX-A:b", "/v1/jobs/%ff", "/v1/jobs/%c0%ae%c0%ae",
		"/v1/jobs/%7f", "/v1/jobs/%e2%80%ae", "/v1/jobs;a=b", "/v1/jobs/;", "/v1/jobs%3flimit=1", "/v1/jobs/%3f", "/v1/jobs/%23", "/v1/jobs/x", "/v1/jobs/0", "/v1/jobs/-1", "/v1/jobs/null", "/v1/jobs/undefined", "/v1/jobs/*", "/v1/jobs/%2a", "/v1/jobs/' or 1=1", "/v1/jobs/%F0%9F%92%A9",
		"/v1/jobs/00000000-0000-0000-0000-000000000000", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057/", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057/nope", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057.json", "/v1/jobs/%30%31890a5d-ac96-774b-bcce-b302099a8057",
		"/v1/jobs/" + strings.Repeat("a", 4000), "/" + strings.Repeat("a/", 2000), "/" + strings.Repeat("%41", 2000), "/v2/jobs", "/api/v1/jobs", "/v1/jobs.json", "/v1/job", "/admin", "/.env", "/.git/config", "/debug/pprof/", "/debug/vars", "/server-status", "/wp-login.php", "/actuator/health", "/livez/", "/readyz/x", "/metrics/", "/livez%00", "/v1/\\..\\jobs", "/v1/jobs/%5c..%5c", "/v1/C:/x", "/~root", "/v1/jobs/%25%30%30", "/v1/jobs/%252e%252e",
	} {
		all = append(all, badRequest{method: "GET", path: strings.ReplaceAll(path, " ", "%20")})
	}
	return all
}

func badKeys() (all []badRequest) {
	for _, given := range []string{
		"", " ", "Bearer", "Bearer ", "Bearer  ", "bearer x", "Basic YWRtaW46YWRtaW4=", "Basic Og==", "Digest username=x", "Token hf_a_b_c", "hf_a_b_c", "Bearer hf_", "Bearer hf_a", "Bearer hf_a_b", "Bearer hf_a_b_c", "Bearer hf___", "Bearer hf_a_b_00000000", "Bearer null", "Bearer undefined",
		"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.", "Bearer ../../etc/passwd", "Bearer ' OR 1=1 --", "Bearer hf_" + strings.Repeat("a", 60000), "Bearer " + strings.Repeat("hf_", 1000), "Bearer hf_ä_ö_ü", "Bearer hf_%00_%00_%00", "Bearer,", "Bearer=x", "Bearer\thf_a_b_c", "Bearer \"hf_a_b_c\"", "Bearer {\"key\":1}", "Bearer hf_a_b_c, Bearer hf_a_b_c", "Bearer hf_*_*_*", "Negotiate x", "AWS4-HMAC-SHA256 Credential=x", "Bearer \x7f"[:7] + "x", "Bearer hf_a_b_" + checkOf("hf_a_b"), "Bearer hf_a_b_c_" + checkOf("hf_a_b_c"), "Bearer _" + checkOf(""), "Bearer hf__b_" + checkOf("hf__b"), "Bearer hf_a__" + checkOf("hf_a_"),
	} {
		all = append(all, badRequest{method: "GET", path: "/v1/jobs", headers: []string{"Authorization", given}})
	}
	return all
}

func badMethods() (all []badRequest) {
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "Get", "BREW", "PURGE", "LINK", "M-SEARCH", "X", "SEARCH", "QUERY", strings.Repeat("M", 200)} {
		all = append(all, badRequest{method: method, path: "/v1/jobs"})
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
		all = append(all, badRequest{method: method, path: "/livez"}, badRequest{method: method, path: "/readyz"})
	}
	all = append(all, badRequest{method: "POST", path: "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057"}, badRequest{method: "PUT", path: "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057"},
		badRequest{method: "PUT", path: "/v1/jobs", headers: []string{"X-HTTP-Method-Override", "GET"}}, badRequest{method: "DELETE", path: "/v1/jobs?_method=GET"})
	return all
}

func badBodies() (all []badRequest) {
	good := `{"kind":"mail"}`
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "application/jsonx", "application/json; charset=utf-16", "application/json; charset=latin1", "application/json;;", "json", "*/*", "application/", "text/json", "application/octet-stream", "application/msgpack", "application/json, text/plain", "image/png", "application/vnd.api+json", "application/json; charset"} {
		all = append(all, badRequest{"POST", "/v1/jobs", good, []string{"Content-Type", kind}})
	}
	for _, packed := range []string{"gzip", "deflate", "br", "zstd", "gzip, gzip", "x", "compress"} {
		all = append(all, badRequest{"POST", "/v1/jobs", good, []string{"Content-Type", "application/json", "Content-Encoding", packed}})
	}
	all = append(all,
		badRequest{"GET", "/v1/jobs", good, []string{"Content-Type", "application/json"}},
		badRequest{"GET", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057", "x", []string{"Content-Type", "application/json"}},
		badRequest{"POST", "/v1/jobs", "", nil},
		badRequest{"POST", "/v1/jobs", " ", nil},
		badRequest{"POST", "/v1/jobs?limit=1", good, nil},
		badRequest{"POST", "/v1/jobs", `{"kind":"mail","args":"` + strings.Repeat("x", 9<<20) + `"}`, nil},
		badRequest{"POST", "/v1/jobs", good, []string{"Idempotency-Key", strings.Repeat("k", 300)}},
		badRequest{"POST", "/v1/jobs", good, []string{"Idempotency-Key", "\x01"[:0] + "a\tb"}},
	)
	return all
}

// badLists are bad parameters of other lists and verbs.
func badLists() (all []badRequest) {
	for _, path := range []string{"/v1/dead-letters", "/v1/groups", "/v1/tombstones", "/v1/errors"} {
		for _, query := range []string{"limit=201", "limit=-1", "limit=x", "cursor=%00", "cursor=x%20y", "nope=1"} {
			all = append(all, badRequest{method: "GET", path: path + "?" + query})
		}
	}
	id := "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057"
	for _, verb := range []string{"/retry", "/cancel", "/discard"} {
		for _, body := range []string{`{"actor":1}`, `{"reason":{}}`, `{"nope":1}`, `{"owner":"x"}`, `{"job":"01890a5d-ac96-774b-bcce-b302099a8057"}`, `{"reason":"\u0000"}`, `[]`, `{"actor":"a","actor":"b"}`} {
			all = append(all, badRequest{"POST", id + verb, body, []string{"Content-Type", "application/json"}})
		}
	}
	for _, body := range []string{`{"state":"complete"}`, `{"token":9}`, `{"owner":"eve"}`, `{"failures":0}`, `{"id":"x"}`, `{"kind":"x"}`, `[]`, `{"priority":99999}`, `{"queue":"a b"}`, `{"tags":"x"}`} {
		all = append(all, badRequest{"PATCH", id, body, []string{"Content-Type", "application/merge-patch+json"}})
	}
	return all
}
