package config

import (
	"strings"
	"time"
)

// A Form is how a setting is written.
type Form string

// The forms.
const (
	Text   Form = "text"
	Count  Form = "count"    // a whole number, 0 or more
	Share  Form = "share"    // 0.5 or 50%
	Span   Form = "duration" // 1m30s
	Switch Form = "switch"   // true or false
	List   Form = "list"     // with commas between
)

// An Alias is another name for a setting in the environment.
type Alias struct {
	Env  string
	Unit time.Duration // of a bare number under this name; 0: it is written like the setting
}

// A Setting is one thing that can be set. Its flag is --name, and in the environment it is HOLDFAST_NAME.
type Setting struct {
	Name    string
	Form    Form
	Default string // as it is written; empty: what About says
	Also    []Alias
	Choices []string // only these
	Secret  bool     // never shown; no flag, because others see the flags of a process; with _FILE behind its name a file holds it
	Shown   bool     // a secret that is worth showing without what is secret in it, and has a flag
	About   string
	Chapter string
}

// Env is its name in the environment.
func (s Setting) Env() string { return prefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) }

// HasFlag reports whether it may stand on the command line.
func (s Setting) HasFlag() bool { return !s.Secret || s.Shown }

const prefix = "HOLDFAST_"

// The chapters of the reference.
const (
	Where     = "Where the jobs are"
	Serving   = "Serving"
	Working   = "Working"
	Failing   = "Dealing with failure"
	Calling   = "What may be called"
	Notifying = "Telling others"
	Logging   = "Logs"
)

// Settings is all there is to set.
var Settings = []Setting{
	{Name: "store", Form: Text, Also: []Alias{{Env: "DATABASE_URL"}}, Secret: true, Shown: true, Chapter: Where,
		About: "The store: a file (jobs.db) or postgres://user@host/database. When left out: jobs.db in the state directory that systemd gives, or else in the user's data directory."},
	{Name: "server", Form: Text, Chapter: Where, About: "For every verb but serve: the server to ask instead of a store, such as http://127.0.0.1:4747."},
	{Name: "key", Form: Text, Secret: true, Chapter: Where, About: "For every verb but serve: the API key for the server. The flag --key-file names a file that holds it."},

	{Name: "listen", Form: Text, Default: "127.0.0.1:4747", Chapter: Serving, About: "Where the server listens. An address that others can reach needs keys."},
	{Name: "auth", Form: Text, Default: "auto", Choices: []string{"auto", "keys", "off"}, Chapter: Serving,
		About: "Whether callers need a key. auto: yes, unless the address is loopback and no key was ever made; the first key locks a server that runs. keys: always. off: never, whatever keys there are, and on loopback only."},
	{Name: "console", Form: Text, Default: "on", Choices: []string{"on", "read-only", "off"}, Chapter: Serving,
		About: "The pages for people, at /console/. read-only: nobody changes anything there, whatever their key may. Where keys are asked for, a visitor signs in with one."},
	{Name: "tls-cert", Form: Text, Chapter: Serving, About: "A file with the server's certificate chain. Without it the server speaks plain HTTP: put a proxy before it."},
	{Name: "tls-key", Form: Text, Chapter: Serving, About: "A file with the certificate's private key."},
	{Name: "trust-proxy", Form: Switch, Default: "false", Chapter: Serving,
		About: "Every request comes through a proxy that sets X-Forwarded-Proto and X-Forwarded-For: they say whether a visitor came by TLS, and from where. Never without such a proxy: callers could set them."},
	{Name: "events", Form: List, Default: "*", Chapter: Serving,
		About: "Which events of jobs are written to the feed for those who follow it (queued, processing, complete, failed, ...; * for all). What subscriptions and groups need is written whatever is said here. none: nothing else."},
	{Name: "rate-per-key", Form: Count, Default: "10000", Chapter: Serving, About: "Requests a second that one key may make; twice as many at once."},
	{Name: "in-flight-per-key", Form: Count, Default: "256", Chapter: Serving, About: "Requests of one key that may be under way at once."},
	{Name: "in-flight", Form: Count, Default: "0", Chapter: Serving, About: "Requests of all that run at once; 0: twelve for each processor, and at least 24. More wait their turn, or are sent away with a time to come back."},
	{Name: "grace", Form: Span, Default: "30s", Chapter: Serving, About: "What work under way is given to finish when the server is asked to stop."},

	{Name: "no-workers", Form: Switch, Default: "false", Chapter: Working, About: "Run no jobs here: only answer, and perform duties."},
	{Name: "workers", Form: Count, Default: "64", Also: []Alias{{Env: "WORKER_CONCURRENCY"}}, Chapter: Working, About: "How many jobs of the built-in kinds run at once; 10 with --exec-config, unless this is set."},
	{Name: "owner-workers", Form: Count, Default: "8", Chapter: Working, About: "How many of them may be of one owner, so that slow calls of one owner do not delay the others. Jobs without an owner count as one owner. 0 for no bound."},
	{Name: "queues", Form: List, Default: "*", Chapter: Working,
		About: "The queues that the built-in workers take jobs of kind http and exec from (exec only with --exec-config). * for all."},
	{Name: "lease", Form: Span, Default: "30s", Also: []Alias{{"WORKER_LEASE_TTL_SEC", time.Second}}, Chapter: Working, About: "How long a silent worker is believed in."},
	{Name: "timeout", Form: Span, Default: "10m", Also: []Alias{{"GATEWAY_TIMEOUT_MS", time.Millisecond}}, Chapter: Working, About: "How long an attempt may take whose job says nothing else."},
	{Name: "exec-config", Form: Text, Chapter: Working, About: "A JSON file that lists the programs that jobs of kind exec may run. Without it there is no such kind."},

	{Name: "policy", Form: Text, Chapter: Failing, About: "A policy file. One that was applied to the store ('holdfast policy apply') replaces it."},
	{Name: "retry-max-attempts", Form: Count, Default: "3", Also: []Alias{{Env: "RETRY_MAX_ATTEMPTS"}}, Chapter: Failing, About: "After how many failed attempts a job has failed for good. Jobs and policies may say otherwise."},
	{Name: "retry-base-delay", Form: Span, Default: "5s", Also: []Alias{{"RETRY_BASE_DELAY_MS", time.Millisecond}}, Chapter: Failing, About: "How long the first retry waits. Each further one waits twice as long, up to an hour."},
	{Name: "retry-jitter-max", Form: Span, Default: "5s", Also: []Alias{{"RETRY_JITTER_MAX_MS", time.Millisecond}}, Chapter: Failing, About: "Up to how much is added to a wait, by chance."},
	{Name: "breaker-window", Form: Count, Default: "20", Also: []Alias{{Env: "CIRCUIT_WINDOW"}}, Chapter: Failing, About: "How many of the last calls a breaker looks at."},
	{Name: "breaker-fail-threshold", Form: Share, Default: "50%", Also: []Alias{{Env: "CIRCUIT_FAIL_THRESHOLD"}}, Chapter: Failing, About: "The share of them that must have failed for it to open. A whole number above 1 is a percentage."},
	{Name: "breaker-cooldown", Form: Span, Default: "30s", Also: []Alias{{"CIRCUIT_COOLDOWN_MS", time.Millisecond}}, Chapter: Failing, About: "How long nothing is let through before it is probed."},

	{Name: "http-allow", Form: List, Chapter: Calling, About: "Private networks that jobs of kind http may call, such as 10.0.0.0/8 or 127.0.0.0/8. Public addresses may be called anyway."},
	{Name: "http-hosts", Form: List, Chapter: Calling, About: "Hosts that they may call wherever these lead, as host or host:port. Whoever answers for such a name decides what is called."},
	{Name: "http-ports", Form: List, Default: "80,443", Chapter: Calling, About: "The ports that they may call. * for all."},
	{Name: "http-dependencies", Form: List, Chapter: Calling, About: "Names of dependencies for the hosts that they call, as host=name; *.example.org=name for all hosts under it. A host without a name is a dependency of its own. Hosts of one name share a breaker, a budget and limits."},
	{Name: "webhook-allow", Form: List, Chapter: Calling, About: "Private networks that webhooks may call."},
	{Name: "webhook-http", Form: Switch, Default: "false", Chapter: Calling, About: "Let webhooks go out over plain HTTP too."},

	{Name: "no-notify", Form: Switch, Default: "false", Chapter: Notifying, About: "Serve no subscriptions here."},
	{Name: "source", Form: Text, Default: "/holdfast", Chapter: Notifying, About: "How receivers see where events come from."},
	{Name: "mail-host", Form: Text, Chapter: Notifying, About: "The mail server (host or host:port). Without it there is no sink mail."},
	{Name: "mail-tls", Form: Text, Default: "starttls", Choices: []string{"starttls", "implicit", "opportunistic", "none"}, Chapter: Notifying, About: "How the way to the mail server is protected. starttls: required. implicit: from the first byte, as on port 465. opportunistic: when the server offers it. none: never; a password is then only given to a server on this machine."},
	{Name: "mail-from", Form: Text, Chapter: Notifying, About: "Who letters come from, such as Holdfast <holdfast@example.com>."},
	{Name: "mail-user", Form: Text, Chapter: Notifying, About: "Who logs in at the mail server."},
	{Name: "mail-password", Form: Text, Secret: true, Chapter: Notifying, About: "And with which password."},
	{Name: "nats-url", Form: Text, Secret: true, Shown: true, Chapter: Notifying, About: "The NATS servers. Without it there is no sink stream."},
	{Name: "nats-stream", Form: Text, Chapter: Notifying, About: "The stream that must take the events."},

	{Name: "log", Form: Text, Default: "auto", Choices: []string{"auto", "json", "text"}, Chapter: Logging, About: "How log lines are written. auto: as text on a terminal, elsewhere as JSON."},
	{Name: "log-level", Form: Text, Default: "info", Choices: []string{"debug", "info", "warn", "error"}, Chapter: Logging, About: "From which level on."},
}

// find is the setting of a name.
func find(name string) Setting {
	for _, s := range Settings {
		if s.Name == name {
			return s
		}
	}
	panic("config: there is no setting " + name) // a mistake of the program
}

// patterns are names in the environment that begin so and are no settings: secrets by their names, and what a program that a job runs is told of it.
var patterns = []string{prefix + "SECRET_", prefix + "TEST_", prefix + "JOB_ID", prefix + "ATTEMPT"}
