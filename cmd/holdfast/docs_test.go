package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	shellBlock   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	shellCommand = regexp.MustCompile(`(?:^|[;|] *|\$\()(?:\$ )?(?:bin/)?holdfast +([^;|)]*)`)
	inlineCode   = regexp.MustCompile("`(?:bin/)?holdfast ([a-z][^`]*)`")
	shellWord    = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
)

// A shown command is one that a page shows. Text that only names a command need not have its arguments.
type shown struct {
	page, text string
	whole      bool
}

// commandsOn returns the holdfast commands that a page shows, without comments.
func commandsOn(page, text string) (all []shown) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
		session := strings.Contains("\n"+block[1], "\n$ ") // its other lines are output
		for _, line := range strings.Split(block[1], "\n") {
			if session && !strings.HasPrefix(line, "$ ") {
				continue
			}
			line, _, _ = strings.Cut(line, " #")
			for _, c := range shellCommand.FindAllStringSubmatch(line, -1) {
				all = append(all, shown{page, c[1], true})
			}
		}
	}
	for _, c := range inlineCode.FindAllStringSubmatch(shellBlock.ReplaceAllString(text, ""), -1) {
		all = append(all, shown{page, strings.ReplaceAll(c[1], "\n", " "), false})
	}
	return all
}

// refusal returns why the command line would be refused before it does anything.
func (s shown) refusal() error {
	var args []string
	for _, word := range shellWord.FindAllString(s.text, -1) {
		if word != "..." && word != ">" {
			args = append(args, strings.NewReplacer("'", "", `"`, "").Replace(word))
		}
	}
	c, rest, err := newRoot().Find(args)
	if err != nil {
		return err
	}
	if !s.whole && len(rest) > 0 && strings.HasPrefix(rest[len(rest)-1], "--") {
		rest = append(rest, "1") // the text names the flag and not its value
		if f := c.Flags().Lookup(strings.TrimPrefix(rest[len(rest)-2], "--")); f != nil && f.Value.Type() != "string" {
			return nil
		}
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if s.whole || c.HasSubCommands() && len(c.Flags().Args()) > 0 && !c.Runnable() {
		return validate(c)
	}
	return nil
}

func validate(c *cobra.Command) error {
	if c.Args == nil {
		return cobra.ArbitraryArgs(c, c.Flags().Args())
	}
	return c.Args(c, c.Flags().Args())
}

func TestThePagesShowCommandsThatExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	ok(t, err)
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		ok(t, err)
		for _, c := range commandsOn(filepath.Base(page), string(text)) {
			seen++
			if err := c.refusal(); err != nil {
				t.Errorf("%s: holdfast %s: %v", c.page, c.text, err)
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d commands were found", seen)
	}
	for _, wrong := range []shown{{text: "nothing", whole: true}, {text: "jobs --nowhere", whole: true}, {text: "retry --reason x", whole: true}} {
		if wrong.refusal() == nil {
			t.Errorf("holdfast %s was not refused", wrong.text)
		}
	}
}
