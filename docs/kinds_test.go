package docs_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/kind/execjob"
	"github.com/holdfastdev/holdfast/kind/httpjob"
)

// The part of kinds.md.
func Example_kinds() {
	// README start
	err := httpjob.Register(worker, httpjob.Config{}) // kind "http"
	must(err)
	err = execjob.Register(worker, execjob.Config{Programs: map[string]execjob.Program{ // kind "exec"
		"thumbnail": {
			Path: "/usr/bin/convert", Args: []string{"--"}, Timeout: time.Minute,
			Limits: execjob.Limits{Memory: 512 << 20, CPU: 30 * time.Second},
		},
	}})
	must(err)

	call, err := httpjob.Draft(httpjob.Request{URL: "https://api.example.org/orders", Body: "7"}) // refuses bad arguments before a job exists
	must(err)
	_, err = jobs.Enqueue(ctx, []holdfast.Draft{call})
	must(err)
	// README end
}

var jsonBlock = regexp.MustCompile("(?ms)^```json\n(.*?)^```$")

func TestTheDraftsOfThePageAboutKindsAreValid(t *testing.T) {
	page, err := os.ReadFile("kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := jsonBlock.FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		var draft holdfast.Draft
		if err := json.Unmarshal([]byte(block[1]), &draft); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(httpjob.Prepare(&draft), execjob.Prepare(&draft)); err != nil || draft.Kind == "" {
			t.Errorf("%s: %v", block[1], err)
		}
	}
	if len(blocks) != 2 {
		t.Errorf("%d drafts", len(blocks))
	}
}
