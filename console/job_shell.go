package console

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// A command is a line to be copied into a shell.
type command struct{ Name, Text string }

// commands ask and do elsewhere what this page does: on the command line, and over HTTP.
func commands(q *ask, job holdfast.Job) []command {
	all := []command{
		{"Look at it", "holdfast job " + job.ID.String()},
		{"Why it is not running", "holdfast explain " + job.ID.String()},
		{"Its story", "holdfast story " + job.ID.String()},
		{"Look at it over HTTP", curl(q, "GET", "/v1/jobs/"+job.ID.String(), nil)},
	}
	if can := canDo(job); q.may(apikey.Operator) && can.Retry {
		body := map[string]string{"reason": "..."}
		all = append(all, command{"Retry it", "holdfast retry " + job.ID.String() + " --reason '...'"}, command{"Retry it over HTTP", curl(q, "POST", "/v1/jobs/"+job.ID.String()+"/retry", body)})
	}
	return all
}

// curl is a request to the API of the server that the visitor asks. The key is theirs to fill in.
func curl(q *ask, method, path string, body any) string {
	scheme := "http"
	if q.TLS != nil || q.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	line := "curl -sS"
	if method != "GET" {
		line += " -X " + method
	}
	if q.visitor.signedIn || q.c.cfg.Who != nil { // elsewhere nobody asks for a key, and one that is empty is refused
		line += ` -H "Authorization: Bearer $HOLDFAST_KEY"`
	}
	if body != nil {
		text, _ := json.Marshal(body) // texts always marshal
		line += " -H " + shellWord("Content-Type: application/json") + " -d " + shellWord(string(text))
	}
	return fmt.Sprintf("%s %s", line, shellWord(scheme+"://"+q.Host+path))
}

// shellWord makes one word of a text for a shell, whatever is in it.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
