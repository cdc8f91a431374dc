package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInSlug = regexp.MustCompile(`[^\pL\pN_\- ]`)
)

// anchorsOf returns the anchors of the headings of a page, as GitHub makes them.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		anchors[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(h[1])), ""), " ", "-")] = true
	}
	return anchors
}

func TestLinksBetweenPagesLeadSomewhere(t *testing.T) {
	pages := map[string]string{}
	for _, s := range allFiles(t, ".md") {
		pages[s.path] = s.text
	}
	for _, s := range files(t, ".md") {
		report(t, brokenLinks(s, func(name string) (string, error) {
			if text, is := pages[name]; is {
				return text, nil
			}
			_, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(name)))
			return "", err
		}))
	}
}

func brokenLinks(s source, read func(string) (string, error)) (bad []violation) {
	for _, at := range link.FindAllStringSubmatchIndex(codeBlock.ReplaceAllStringFunc(s.text, blank), -1) {
		target := s.text[at[2]:at[3]]
		if strings.Contains(target, ":") {
			continue // another site
		}
		name, anchor, _ := strings.Cut(target, "#")
		page := path.Join(s.folder(), name)
		if name == "" {
			page = s.path
		}
		text, err := read(page)
		line := 1 + strings.Count(s.text[:at[0]], "\n")
		switch {
		case err != nil:
			bad = append(bad, s.violation(line, "the link %s leads nowhere", target))
		case anchor != "" && strings.HasSuffix(page, ".md") && !anchorsOf(text)[anchor]:
			bad = append(bad, s.violation(line, "the page of the link %s has no such heading", target))
		}
	}
	return bad
}

// blank replaces every byte but ends of lines, so that positions stay the same.
func blank(text string) string {
	blanked := []byte(text)
	for i, b := range blanked {
		if b != '\n' {
			blanked[i] = ' '
		}
	}
	return string(blanked)
}
