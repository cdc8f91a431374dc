package docs_test

import (
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
