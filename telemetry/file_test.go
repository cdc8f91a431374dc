package telemetry_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/internal/testprograms"
	"github.com/holdfastdev/holdfast/telemetry"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for file, want := range map[string][]byte{"dashboard.json": telemetry.Dashboard(), "alerts.yaml": telemetry.Rules()} {
		is, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(is, want) {
			t.Errorf("telemetry/%s is out of date: in telemetry, run 'go run ./generate' (%v)", file, err)
		}
	}
}

var metric = regexp.MustCompile(`\bholdfast_[a-z_]+`)

func TestEveryMetricOfTheDashboardAndTheRulesIsOnThePage(t *testing.T) {
	there := map[string]bool{}
	for line := range strings.Lines(everything(t)) {
		if !strings.HasPrefix(line, "#") {
			there[metric.FindString(line)] = true
		}
	}
	named := map[string]bool{}
	for _, text := range [][]byte{telemetry.Dashboard(), telemetry.Rules()} {
		for _, name := range metric.FindAllString(string(text), -1) {
			named[name] = true
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d metrics are named", len(named))
	}
	for name := range named {
		if !there[name] {
			t.Errorf("%s is named and not on the page", name)
		}
	}
	for name := range there {
		bare := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
		if name != "" && !named[name] && !named[bare+"_bucket"] && name != "holdfast_read_errors_total" {
			t.Errorf("%s is on the page and on no panel", name)
		}
	}
}

func TestPrometheusTakesTheRulesAndTheyFireWhenTheyShould(t *testing.T) {
	promtool, err := testprograms.Promtool.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "testdata/alerts_test.yaml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

func TestEveryAlertIsTestedAndHasASectionInTheRunbook(t *testing.T) {
	rules := string(telemetry.Rules())
	tried, err := os.ReadFile("testdata/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	pages := regexp.MustCompile(`runbook_url: '[^']+/docs/runbook\.md#([a-z-]+)'`).FindAllStringSubmatch(rules, -1)
	if len(names) != len(pages) || len(names) < 8 {
		t.Errorf("%d alerts and %d pages of the runbook", len(names), len(pages))
	}
	for _, name := range names {
		if !strings.Contains(string(tried), "alertname: "+name[1]+"\n") {
			t.Errorf("%s is never tried out in testdata/alerts_test.yaml", name[1])
		}
	}
	runbook, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	chapters := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(runbook), -1) {
		chapters[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	for _, page := range pages {
		if !chapters[page[1]] {
			t.Errorf("an alert leads to docs/runbook.md#%s, and there is no such chapter", page[1])
		}
	}
}

func TestTheDashboardIsOneThatGrafanaCanLayOut(t *testing.T) {
	var dashboardRows struct {
		UID    string `json:"uid"`
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Type    string `json:"type"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		} `json:"panels"`
	}
	if err := json.Unmarshal(telemetry.Dashboard(), &dashboardRows); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range dashboardRows.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q shows nothing, or its id is taken", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if was := taken[[2]int{x, y}]; was != "" || x >= 24 {
					t.Fatalf("%q lies over %q or beyond the edge", p.Title, was)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
