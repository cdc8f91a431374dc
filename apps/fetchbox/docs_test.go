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
		"ADDR": "nonsense", "SPOOL_BYTES": "1", "NATS_ADDR": "x", "DOWNLOAD_RETRY_LIMIT": "0", "STORAGE_RETRY_LIMIT": "101", "PROXY_EXHAUSTED": "perhaps", "ALLOW_NETWORKS": "10.0.0.0",
		"RETENTION_RECORD": "1ms", "HOSTS": "http://x", "WORKER_CONCURRENCY": "-1",
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
