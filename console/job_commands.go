package console

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// A command is a shell command to copy.
type command struct{ Name, Text string }

// commands returns the commands and HTTP requests that do the same as the page of a job.
func commands(q *request, job holdfast.Job) []command {
	all := []command{
		{"Show the job", "holdfast job " + job.ID.String()},
		{"Explain why it is not running", "holdfast explain " + job.ID.String()},
		{"Show its story", "holdfast story " + job.ID.String()},
		{"Show the job over HTTP", curl(q, "GET", "/v1/jobs/"+job.ID.String(), nil)},
	}
	if can := canDo(job); q.may(apikey.Operator) && can.Retry {
		body := map[string]string{"reason": "..."}
		all = append(all, command{"Retry the job", "holdfast retry " + job.ID.String() + " --reason '...'"}, command{"Retry the job over HTTP", curl(q, "POST", "/v1/jobs/"+job.ID.String()+"/retry", body)})
	}
	return all
}

// curl returns a curl command for the API of this server. The visitor sets the key in HOLDFAST_KEY.
func curl(q *request, method, path string, body any) string {
	scheme := "http"
	if q.TLS != nil || q.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	line := "curl -sS"
	if method != "GET" {
		line += " -X " + method
	}
	if q.visitor.signedIn || q.c.cfg.Who != nil { // a server without keys refuses an empty one
		line += ` -H "Authorization: Bearer $HOLDFAST_KEY"`
	}
	if body != nil {
		text, _ := json.Marshal(body) // strings always marshal
		line += " -H " + shellWord("Content-Type: application/json") + " -d " + shellWord(string(text))
	}
	return fmt.Sprintf("%s %s", line, shellWord(scheme+"://"+q.Host+path))
}

// shellWord quotes a text as one word for a POSIX shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
