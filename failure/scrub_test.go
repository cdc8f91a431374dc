package failure

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestScrubHidesCredentials(t *testing.T) {
	cases := []struct{ text, want string }{
		{"dial postgres://app:hunter2@db.internal:5432/jobs failed", "dial postgres://***@db.internal:5432/jobs failed"},
		{"dial postgres://app:hun/t@er2@db:5432/jobs", "dial postgres://***@db:5432/jobs"},
		{"GET https://token@example.org/x", "GET https://***@example.org/x"},
		{"root:p@ss/w0rd@tcp(10.0.0.1:3306)/app: refused", "***@tcp(10.0.0.1:3306)/app: refused"},
		{"host=db user=app password=hunter2 sslmode=off", "host=db user=app password=*** sslmode=off"},
		{"host=db password='hunter two' sslmode=off", "host=db password=*** sslmode=off"},
		{`{"password":"hun\"ter2","user":"ada"}`, `{"password":***,"user":"ada"}`},
		{`{"client_secret": "abc", "n": 1}`, `{"client_secret": ***, "n": 1}`},
		{"DB_PASSWORD: hunter", "DB_PASSWORD: ***"},
		{"Authorization: Bearer abc.def.ghi\nHost: x", "Authorization: ***\nHost: x"},
		{`headers map[Authorization:[Basic dXNlcjpwYXNz] Accept:[*/*]]`, `headers map[Authorization:[***`},
		{"sent Bearer abcdef123456 and got 401", "sent Bearer *** and got 401"},
		{"Cookie: session=abc; theme=dark", "Cookie: ***"},
		{"X-Api-Key: 8f3c2b1a9d", "X-Api-Key: ***"},
		{"GET https://s3.example.org/b/k?X-Amz-Signature=abc123&X-Amz-Credential=AK/2026&n=1", "GET https://s3.example.org/b/k?X-Amz-Signature=***&X-Amz-Credential=***&n=1"},
		{"GET https://x.example.org/f?sig=abc%3D&se=2026&key=zzz", "GET https://x.example.org/f?sig=***&se=2026&key=***"},
		{"access_token=abc123&x=1", "access_token=***&x=1"},
		{"used AKIAABCDEFGHIJKLMNOP here", "used *** here"},
		{"used ghp_abcdefghijklmnopqrstuvwxyz0123 here", "used *** here"},
		{"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc-def here", "jwt *** here"},
		{"key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nend", "key:\n***\nend"},
		{"key: -----BEGIN PRIVATE KEY-----\nMIIE and the end is missing", "key: ***"},
		{"open /home/ada/app/uploads/report.pdf: permission denied", "open …/report.pdf: permission denied"},
		{"\t/home/ada/src/app/main.go:42 +0x1d", "\t…/main.go:42 +0x1d"},
		{`open C:\Users\ada\report.pdf: denied`, `open …\report.pdf: denied`},
		{"open ../../etc/passwd.bak", "open …/passwd.bak"},
		{"a\x00b\x1b[31mred\x1b[0m\xff\u202e", `a\x00b\x1b[31mred\x1b[0m` + "\uFFFD" + `\u202e`},
	}
	for _, c := range cases {
		if got := Scrub(c.text); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

func TestScrubLeavesOrdinarySentencesAlone(t *testing.T) {
	for _, text := range []string{
		"basic authentication failed",
		"unexpected token: end of file",
		"GET https://example.org/v1/files returned 404",
		"image/png is not text/plain; n/a",
		"read tcp 10.0.0.1:443->10.0.0.2:55123: connection reset by peer",
		"author=ada wrote 5 lines",
		"line one\n\tline two",
		"größer als 5 €",
		"",
	} {
		if got := Scrub(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestALongTextIsCutBetweenCharactersAfterItWasScrubbed(t *testing.T) {
	got := Scrub(strings.Repeat("ä ", 1<<20))
	if len(got) > maxDetail || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, ends %q", len(got), got[len(got)-8:])
	}
	// A secret across the place where the text is cut must not be kept by halves.
	for shift := range 64 {
		text := strings.Repeat("password=x ", 1) + strings.Repeat("y", maxDetail-40+shift) + " postgres://app:hunter2secret@db/x"
		if got := Scrub(text); strings.Contains(got, "hunter") {
			t.Fatalf("shift %d: half a secret survived: %q", shift, got[len(got)-40:])
		}
		text = strings.Repeat(" /a/very/long/path/indeed/x", maxRaw/27-1) + strings.Repeat(" ", shift) + "postgres://app:hunter2secret@db/x"
		if got := Scrub(text); strings.Contains(got, "hunter") {
			t.Fatalf("shift %d: half a secret survived the first cut", shift)
		}
	}
}

func TestNoPlantedSecretSurvives(t *testing.T) {
	plants := []string{
		"postgres://app:%@db/x", "https://%@host/", "password=%", `"api_key":"%"`, "Authorization: Bearer %", "?token=%&a=b",
		"user:%@tcp(db)/x", "secret='%'", "Cookie: a=%", "PGPASSWORD=%",
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := "Z9" + rapid.StringMatching(`[A-Za-z0-9]{6,30}`).Draw(t, "secret")
		plant := strings.ReplaceAll(rapid.SampledFrom(plants).Draw(t, "plant"), "%", secret)
		before := rapid.StringMatching(`[a-z :,/.0-9]{0,40}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z :,/.0-9]{0,40}`).Draw(t, "after")
		if got := Scrub(before + " " + plant + " " + after); strings.Contains(got, secret) {
			t.Fatalf("survived: %q", got)
		}
	})
}

func FuzzScrub(f *testing.F) {
	for _, seed := range []string{
		"password=x", "postgres://a:b@c", "\xff\x00", "Bearer abcdef1", "/a/b/c", `C:\a\b`, "-----BEGIN PRIVATE KEY-----", `secret="`,
		strings.Repeat("token=", 1000), strings.Repeat("://", 100) + "@", "\u202e\u200b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Scrub(text)
		if !utf8.ValidString(got) || len(got) > maxDetail {
			t.Errorf("%q: %d bytes, valid %v", text, len(got), utf8.ValidString(got))
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("%q: control character at %d", got, i)
		}
	})
}
