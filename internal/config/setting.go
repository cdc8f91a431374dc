package config

import (
	"strings"
	"time"
)

// A Form is the form in which the value of a setting is written.
type Form string

// The forms.
const (
	Text   Form = "text"
	Count  Form = "count"    // a whole number, 0 or more
	Share  Form = "share"    // 0.5 or 50%
	Span   Form = "duration" // 1m30s
	Switch Form = "switch"   // true or false
	List   Form = "list"     // separated by commas
)

// An Alias is a further environment variable for a setting.
type Alias struct {
	Env  string
	Unit time.Duration // the unit of a bare number in this variable; 0: it is written like the setting
}

// A Setting is one setting of the command. Its flag is --name and its environment variable HOLDFAST_NAME.
type Setting struct {
	Name    string
	Form    Form
	Default string // as it is written; if empty, About describes the default
	Also    []Alias
	Choices []string // the only allowed values
	Secret  bool     // never printed; no flag, because other users can see the flags of a process. The variable with _FILE appended names a file that contains it
	Shown   bool     // an address that is printed without its secret parts, and has a flag
	About   string   // the description for the flag and the reference
	Chapter string   // of the reference
}

// Env returns the name of the environment variable.
func (s Setting) Env() string { return prefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) }

// HasFlag reports whether the setting has a flag.
func (s Setting) HasFlag() bool { return !s.Secret || s.Shown }

const prefix = "HOLDFAST_"

// The chapters of the reference.
const (
	Where     = "Store"
	Serving   = "Server"
	Working   = "Workers"
	Failing   = "Retries and breakers"
	Calling   = "Outgoing calls"
	Notifying = "Notifications"
	Logging   = "Logs"
)

// Settings lists all settings, in the order of the reference.
var Settings = []Setting{
	{Name: "store", Form: Text, Also: []Alias{{Env: "DATABASE_URL"}}, Secret: true, Shown: true, Chapter: Where,
		About: "The store: a file (jobs.db) or a PostgreSQL URL (postgres://user@host/database). Default: jobs.db in the state directory set by systemd, otherwise in the user's data directory."},
	{Name: "server", Form: Text, Shown: true, Chapter: Where, About: "URL of a Holdfast server to use instead of a store, such as http://127.0.0.1:4747. Not for the command serve."},
	{Name: "key", Form: Text, Secret: true, Chapter: Where, About: "API key for the server. The flag --key-file names a file that contains it. Not for the command serve."},

	{Name: "listen", Form: Text, Default: "127.0.0.1:4747", Chapter: Serving, About: "Address on which the server listens. An address that other machines can reach requires API keys."},
	{Name: "auth", Form: Text, Default: "auto", Choices: []string{"auto", "keys", "off"}, Chapter: Serving,
		About: "Whether clients need an API key. auto: required, unless the address is loopback and no key exists; a running server requires keys as soon as the first one is created. keys: always required. off: never required, even if keys exist; allowed on loopback only."},
	{Name: "console", Form: Text, Default: "on", Choices: []string{"on", "read-only", "off"}, Chapter: Serving,
		About: "The web console at /console/. read-only: no changes can be made in it, whatever the key allows. If API keys are required, users sign in with one."},
	{Name: "tls-cert", Form: Text, Chapter: Serving, About: "File with the server's TLS certificate chain. Without it the server uses plain HTTP; put a TLS proxy in front of it."},
	{Name: "tls-key", Form: Text, Chapter: Serving, About: "File with the private key of the certificate."},
	{Name: "trust-proxy", Form: Switch, Default: "false", Chapter: Serving,
		About: "Trust the X-Forwarded-Proto and X-Forwarded-For headers. Enable it only if every request comes through a proxy that sets them; otherwise clients can forge them."},
	{Name: "events", Form: List, Default: "*", Chapter: Serving,
		About: "Job events that are written to the feed for its readers: queued, processing, complete, failed and so on; * for all, none for none. Events that subscriptions and groups need are always written."},
	{Name: "rate-per-key", Form: Count, Default: "10000", Chapter: Serving, About: "Maximum requests per second for each key. Bursts of twice as many are allowed."},
	{Name: "in-flight-per-key", Form: Count, Default: "256", Chapter: Serving, About: "Maximum concurrent requests for each key."},
	{Name: "in-flight", Form: Count, Default: "0", Chapter: Serving, About: "Maximum concurrent requests in total. 0: twelve per processor, at least 24. Further requests wait, or get 503 with Retry-After."},
	{Name: "grace", Form: Span, Default: "30s", Chapter: Serving, About: "Shutdown grace period. Running jobs and requests have this long to finish after a stop is requested."},

	{Name: "no-workers", Form: Switch, Default: "false", Chapter: Working, About: "Run no jobs in this process. It serves requests and performs duties only."},
	{Name: "workers", Form: Count, Default: "64", Also: []Alias{{Env: "WORKER_CONCURRENCY"}}, Chapter: Working, About: "Maximum number of jobs of the built-in kinds that run at once. The default is 10 if --exec-config is set."},
	{Name: "owner-workers", Form: Count, Default: "8", Chapter: Working, About: "Maximum number of these jobs for one owner, so that slow calls of one owner do not delay others. Jobs without an owner count as one owner. 0: no limit."},
	{Name: "queues", Form: List, Default: "*", Chapter: Working,
		About: "Queues from which the built-in workers claim jobs of kinds http and exec; * for all. NAME=N runs at most N jobs of that queue at once, such as mail=5. Kind exec requires --exec-config."},
	{Name: "lease", Form: Span, Default: "30s", Also: []Alias{{"WORKER_LEASE_TTL_SEC", time.Second}}, Chapter: Working, About: "Lease duration. A job whose worker stops renewing is reclaimed after this time."},
	{Name: "timeout", Form: Span, Default: "10m", Also: []Alias{{"GATEWAY_TIMEOUT_MS", time.Millisecond}}, Chapter: Working, About: "Time limit of an attempt, unless the job sets its own."},
	{Name: "exec-config", Form: Text, Chapter: Working, About: "JSON file that lists the programs that jobs of kind exec may run. Without it, kind exec is not available."},

	{Name: "policy", Form: Text, Chapter: Failing, About: "Policy file. A policy applied to the store with 'holdfast policy apply' replaces it."},
	{Name: "retry-max-attempts", Form: Count, Default: "3", Also: []Alias{{Env: "RETRY_MAX_ATTEMPTS"}}, Chapter: Failing, About: "Maximum number of failed attempts before a job fails for good. Jobs and policies can override it."},
	{Name: "retry-base-delay", Form: Span, Default: "5s", Also: []Alias{{"RETRY_BASE_DELAY_MS", time.Millisecond}}, Chapter: Failing, About: "Delay before the first retry. It doubles with each further retry, up to one hour."},
	{Name: "retry-jitter-max", Form: Span, Default: "5s", Also: []Alias{{"RETRY_JITTER_MAX_MS", time.Millisecond}}, Chapter: Failing, About: "Maximum random time added to each retry delay."},
	{Name: "breaker-window", Form: Count, Default: "20", Also: []Alias{{Env: "CIRCUIT_WINDOW"}}, Chapter: Failing, About: "Number of most recent calls that a breaker evaluates."},
	{Name: "breaker-fail-threshold", Form: Share, Default: "50%", Also: []Alias{{Env: "CIRCUIT_FAIL_THRESHOLD"}}, Chapter: Failing, About: "Share of failed calls in the window at which a breaker opens. A whole number above 1 is read as a percentage."},
	{Name: "breaker-cooldown", Form: Span, Default: "30s", Also: []Alias{{"CIRCUIT_COOLDOWN_MS", time.Millisecond}}, Chapter: Failing, About: "How long a breaker stays open before the dependency is probed."},

	{Name: "http-allow", Form: List, Chapter: Calling, About: "Private networks that jobs of kind http may call, such as 10.0.0.0/8 or 127.0.0.0/8. Public addresses are always allowed."},
	{Name: "http-hosts", Form: List, Chapter: Calling, About: "Hosts that jobs of kind http may call at any address, public or private, as host or host:port. The name server of such a host decides which address is called."},
	{Name: "http-ports", Form: List, Default: "80,443", Chapter: Calling, About: "Ports that jobs of kind http may call; * for all."},
	{Name: "http-dependencies", Form: List, Chapter: Calling, About: "Dependency names for the hosts that jobs of kind http call, as host=name, or *.example.org=name for all subdomains. Hosts with the same name share a breaker, a retry budget and limits. A host without a name is a dependency of its own."},
	{Name: "webhook-allow", Form: List, Chapter: Calling, About: "Private networks that webhooks may call."},
	{Name: "webhook-http", Form: Switch, Default: "false", Chapter: Calling, About: "Allow webhooks over plain HTTP."},

	{Name: "no-notify", Form: Switch, Default: "false", Chapter: Notifying, About: "Make no deliveries to subscriptions in this process."},
	{Name: "source", Form: Text, Default: "/holdfast", Chapter: Notifying, About: "Value of the source attribute in delivered events."},
	{Name: "mail-host", Form: Text, Chapter: Notifying, About: "SMTP server, as host or host:port. Without it, mail subscriptions are not available."},
	{Name: "mail-tls", Form: Text, Default: "starttls", Choices: []string{"starttls", "implicit", "opportunistic", "none"}, Chapter: Notifying, About: "TLS for the connection to the SMTP server. starttls: required. implicit: from the first byte, as on port 465. opportunistic: if the server offers it. none: never; a password is then sent only to a server on this machine."},
	{Name: "mail-from", Form: Text, Chapter: Notifying, About: "Sender address, such as Holdfast <holdfast@example.com>."},
	{Name: "mail-user", Form: Text, Chapter: Notifying, About: "SMTP user name."},
	{Name: "mail-password", Form: Text, Secret: true, Chapter: Notifying, About: "SMTP password."},
	{Name: "nats-url", Form: Text, Secret: true, Shown: true, Chapter: Notifying, About: "URLs of the NATS servers. Without it, stream subscriptions are not available."},
	{Name: "nats-stream", Form: Text, Chapter: Notifying, About: "NATS stream that must accept the events."},

	{Name: "log", Form: Text, Default: "auto", Choices: []string{"auto", "json", "text"}, Chapter: Logging, About: "Log format. auto: text on a terminal, otherwise JSON."},
	{Name: "log-level", Form: Text, Default: "info", Choices: []string{"debug", "info", "warn", "error"}, Chapter: Logging, About: "Minimum level of log lines."},
}

// find returns the setting of a name. It panics if there is none.
func find(name string) Setting {
	for _, s := range Settings {
		if s.Name == name {
			return s
		}
	}
	panic("config: there is no setting " + name) // a programming error
}

// patterns are prefixes of environment variables that begin with HOLDFAST_ and are not settings: named secrets, variables of tests, and variables that a program run by
// a job receives.
var patterns = []string{prefix + "SECRET_", prefix + "TEST_", prefix + "JOB_ID", prefix + "ATTEMPT"}
