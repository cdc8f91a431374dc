package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/internal/secret"
)

func TestASecretIsInItsVariableOrInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(path, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_SECRET_SHOP_HOOK", "from a variable")
	t.Setenv("HOLDFAST_SECRET_OLD_HOOK_FILE", path)
	t.Setenv("HOLDFAST_SECRET_LOST_FILE", path+"s")
	for name, want := range map[string]string{"shop-hook": "from a variable", "Old.Hook": "from a file", "lost": "", "absent": ""} {
		got, err := secret.FromEnvironment(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && (strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), secret.Variable(name))) {
			t.Error(err)
		}
	}
}

func TestASecretIsHiddenHoweverItIsSpelled(t *testing.T) {
	const value = `canary/9+"&k=<s>`
	quoted, _ := json.Marshal(value)
	for _, text := range []string{
		value, string(quoted), url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	} {
		if got := secret.Hide("a "+text+" b "+text, "other", value); strings.Contains(got, "canary") || strings.Contains(got, text) || strings.Count(got, secret.Hidden) != 2 || !strings.HasPrefix(got, "a ") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := secret.Hide("longer and long", "long", "longer"); got != "[secret] and [secret]" {
		t.Error(got)
	}
	if got := secret.Hide("a cat", "", "a"); got != "a cat" {
		t.Error(got)
	}
}
