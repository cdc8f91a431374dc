package telemetry

import (
	stdflag "flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var update = stdflag.Bool("update", false, "rewrite the tables of docs/metrics.md")

const page = "../docs/metrics.md"

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]*)", unit: "[^"]*", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// rowsOf returns a row for every metric of a collector.
func rowsOf(t *testing.T, c prometheus.Collector) (rows []string) {
	t.Helper()
	form := "gauge"
	switch c.(type) {
	case *prometheus.CounterVec:
		form = "counter"
	case *prometheus.HistogramVec:
		form = "histogram"
	}
	ch := make(chan *prometheus.Desc, 100)
	c.Describe(ch)
	close(ch)
	for desc := range ch {
		words := described.FindStringSubmatch(desc.String())
		if words == nil {
			t.Fatalf("the description %s has another form", desc)
		}
		of := form
		if strings.HasSuffix(words[1], "_total") {
			of = "counter"
		}
		labels := ""
		if words[3] != "" {
			labels = "`" + strings.ReplaceAll(words[3], ",", "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", words[1], of, labels, words[2]))
	}
	return rows
}

func table(rows []string) string {
	slices.Sort(rows)
	return "| metric | type | labels | meaning |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
}

// within replaces what stands between two comments of the page.
func within(t *testing.T, text, name, content string) string {
	t.Helper()
	part := regexp.MustCompile(`(?s)(<!-- ` + name + `: [^\n]* -->\n)(.*?)(<!-- ` + name + ` end -->\n)`)
	at := part.FindStringSubmatchIndex(text)
	if at == nil {
		t.Fatalf("%s has no part <!-- %s -->", page, name)
	}
	return text[:at[3]] + content + text[at[6]:]
}

func TestThePageListsEveryMetric(t *testing.T) {
	m := New(Config{Source: struct{ Source }{}})
	var process, store []string
	for _, c := range m.collectors {
		if _, reads := c.(*storeCollector); reads {
			store = append(store, rowsOf(t, c)...)
			continue
		}
		process = append(process, rowsOf(t, c)...)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := within(t, within(t, string(text), "metrics", table(process)), "store metrics", table(store))
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the registry has: run go test -C telemetry . -run ThePageLists -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
