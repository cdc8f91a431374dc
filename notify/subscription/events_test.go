package subscription

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheListOfEventsInTheDocsIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\n## Names of events\n")
	list, _, _ = strings.Cut(list, "\n## ")
	var documented, known []string
	for row := range strings.Lines(list) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range regexp.MustCompile("`([a-z-]+\\.[a-z_*-]+)`").FindAllStringSubmatch(cells[1], -1) {
			documented = append(documented, name[1])
		}
	}
	for subject, names := range maps.All(eventNames) {
		for _, name := range names {
			known = append(known, subject+"."+name)
		}
	}
	slices.Sort(documented)
	slices.Sort(known)
	if slices.Equal(documented, known) {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(known), func(n string) bool { return slices.Contains(documented, n) })
	wrong := slices.DeleteFunc(slices.Clone(documented), func(n string) bool { return slices.Contains(known, n) })
	t.Errorf("docs/notifications.md lacks %v and has unknown or repeated names: %v", missing, wrong)
}
