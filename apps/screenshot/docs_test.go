package main

import (
	"os"
	"strings"
	"testing"
)

// The table in the README has each setting once, with its default and meaning.
func TestTheReadmeListsEverySetting(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range settingTable {
		if line := k.Row(); strings.Count(string(text), line) != 1 {
			t.Errorf("README.md must have this line once:\n%s", line)
		}
	}
}

func TestEveryBadSettingIsNamed(t *testing.T) {
	bad := map[string]string{
		"ADDR": "nonsense", "PUBLIC_URL": "example.com", "BROWSERS": "0", "BROWSER_SANDBOX": "perhaps", "SHOT_TIMEOUT_SEC": "0", "ALLOW_NETWORKS": "10.0.0.0", "RETENTION_PICTURE": "1ms", "HOSTS": "http://x", "WELCOME_CREDITS": "-1",
	}
	_, err := readSettings(func(name string) string { return bad[name] })
	if err == nil {
		t.Fatal("all of it was taken")
	}
	for name := range bad {
		if !strings.Contains(err.Error(), name+"=") {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}
