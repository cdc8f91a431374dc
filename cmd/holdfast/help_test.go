package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestTheManualHasAPageForEveryCommand(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man1")
	if code, _, stderr := command(t, "man", folder); code != exitOK {
		t.Fatal(stderr)
	}
	var missing []string
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		page := filepath.Join(folder, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		text, err := os.ReadFile(page)
		if c.IsAvailableCommand() && (err != nil || len(text) == 0) {
			missing = append(missing, c.CommandPath())
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	root := newRoot()
	look(root)
	if len(missing) > 0 {
		t.Errorf("no page for %v", missing)
	}
	text, err := os.ReadFile(filepath.Join(folder, "holdfast.1"))
	ok(t, err)
	for _, said := range []string{"Exit codes", "77"} {
		if !strings.Contains(string(text), said) {
			t.Errorf("the manual does not contain %q", said)
		}
	}
}

func TestEveryCommandHasHelpAndHidesTheStoresPassword(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://u:hunter2@127.0.0.1:1/x")
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Short == "" && !c.Hidden {
			t.Errorf("%s has no help", c.CommandPath())
		}
		if strings.Contains(c.UsageString(), "hunter2") {
			t.Errorf("the help of %s shows the password", c.CommandPath())
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	look(newRoot())
	code, out, stderr := command(t, "config")
	if code != exitOK || strings.Contains(out, "hunter2") || !strings.Contains(out, "u:xxxxx@") || !strings.Contains(out, "DATABASE_URL") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	if _, out, _ := command(t, "config", "--lease", "7s", "--json"); !strings.Contains(out, `"from": "--lease"`) {
		t.Error(out)
	}
}

func TestShellCompletionOffersExistingNames(t *testing.T) {
	address, failed, _ := newTestStore(t)
	runSteps(t, address, []step{{"breakers open gateway --actor ada", exitOK, "open"}, {"retry --actor ada " + failed.String(), exitOK, ""}})
	for line, want := range map[string]string{
		"jobs --queue": "default", "jobs --kind": "mail", "jobs --dependency": "gateway", "breakers close": "gateway", "jobs --state": "processing", "serve --auth": "keys", "keys create --scope": "admin",
	} {
		args := append([]string{"__complete"}, strings.Fields(line)...)
		args = append(args[:2:2], append([]string{"--store", address}, args[2:]...)...)
		// Completion has a short time limit, and this machine may be busy: try again.
		waitUntil(t, line+" offers "+want, func() bool {
			_, out, _ := command(t, append(args, "")...)
			return slices.Contains(strings.Split(out, "\n"), want)
		})
	}
}

func TestTheVersionIsPrinted(t *testing.T) {
	schema := anystore.NewestSchema()
	says := fmt.Sprintf("makes tables of version %d, which programs can use that know version %d", schema.Version, schema.Needs)
	if code, out, _ := command(t, "version"); code != exitOK || !strings.HasPrefix(out, "holdfast ") || !strings.Contains(out, "go1.") || !strings.Contains(out, says) {
		t.Error(out)
	}
	var b build
	code, out, _ := command(t, "version", "--json")
	if err := json.Unmarshal([]byte(out), &b); err != nil || code != exitOK || b.Schema != schema || b.Go != runtime.Version() || b.Version == "" {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
}
