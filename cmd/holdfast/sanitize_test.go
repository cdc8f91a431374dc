package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// controlCharacters has control characters of every type: C0, C1 and bidi.
const controlCharacters = "\x1b[2J\u009b31m\u202e\u2066\u200f\u2028\a"

func expectPlain(t *testing.T, what, text string) {
	t.Helper()
	if at := strings.IndexFunc(text, func(r rune) bool { return unsafe(r) && r != '\n' && r != '\t' }); at >= 0 {
		t.Errorf("%s prints %q", what, text[max(0, at-40):min(len(text), at+20)])
	}
}

func TestTextFromAServerCannotControlTheTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		body, _ := json.Marshal(map[string]any{"type": "/problems/conflict", "title": controlCharacters, "status": 409, "code": "conflict", "detail": "no" + controlCharacters + "\nholdfast: fine"})
		_, _ = w.Write(body)
	}))
	defer server.Close()
	for _, line := range []string{"jobs", "jobs --json", "queues", "explain 01890000-0000-7000-8000-000000000000", "retry 01890000-0000-7000-8000-000000000000 --actor ada", "errors", "doctor"} {
		code, out, stderr := command(t, append(splitArgs(line), "--server", server.URL)...)
		expectPlain(t, line, out+stderr)
		if code == exitOK || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d %q", line, code, stderr)
		}
	}
}

func TestPrintedJSONIsPlainAndDecodesToTheSameValue(t *testing.T) {
	text, err := jsonLine(map[string]string{"a": controlCharacters})
	if err != nil {
		t.Fatal(err)
	}
	expectPlain(t, "jsonLine", text)
	var back map[string]string
	if err := json.Unmarshal([]byte(text), &back); err != nil || back["a"] != controlCharacters {
		t.Errorf("%s: %q, %v", text, back["a"], err)
	}
}

func TestThePlainWriterReplacesCharactersThatAreSplitAcrossWrites(t *testing.T) {
	var out bytes.Buffer
	w := &plainWriter{to: &out}
	text := "a\tb\nc" + controlCharacters + "é漢\xff\x9b"
	for i := range len(text) { // each byte by itself
		if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	expectPlain(t, "the writer", out.String())
	if !strings.HasPrefix(out.String(), "a\tb\nc") || !strings.Contains(out.String(), "é漢") {
		t.Errorf("%q", out.String())
	}
}
