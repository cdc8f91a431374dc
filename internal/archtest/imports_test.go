package archtest

import (
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfastdev/holdfast"

// An importRule says what the Go files of a folder may import; test files are not checked. It also holds for the folders below that have no rule of their own.
type importRule struct {
	path    string
	ours    string // packages of this repository that it may import, besides the root, the contract of stores and internal/check; "-": only internal/check; "*": all but the applications
	outside string // third-party modules that it may import
	never   string // packages of the standard library that it must not import
	why     string
}

var importRules = []importRule{
	{".", "-", "", "os net net/http database/sql log log/slog", "what every program needs: every package imports it, so it imports none"},
	{"failure", "", "", "os net net/http database/sql log log/slog math/rand math/rand/v2", "decisions are pure functions: they can be tested and explained without a store"},
	{"failure/breaker", "-", "", "os net net/http database/sql log log/slog math/rand math/rand/v2", "a breaker is a value: any caller can store it"},
	{"failure/policy", "failure", "go.yaml.in/yaml/v3", "os net net/http database/sql log log/slog math/rand math/rand/v2", "policies are data: reading and testing them is pure"},
	{"failure/catalog", "failure", "", "os net net/http database/sql log log/slog math/rand math/rand/v2", "the list of codes is computed from records: any caller can store them"},
	{"schedule", "", "github.com/netresearch/go-cron", "os net net/http database/sql log log/slog", "due times are computed by pure functions: they can be tested without a clock"},
	{"duty", "", "", "os net net/http database/sql log log/slog", "operators' requests to duties and the duties' status are values: any caller can store them"},
	{"engine", "failure schedule duty internal/dutypace internal/decode", "", "net/http database/sql log", "the engine works on a local store or through a server and does not know which"},
	{"holdfasttest", "engine ops store/sqlite internal/dutypace", "", "net/http database/sql", "helps programs test their jobs: it runs what they run, on an SQLite store"},
	{"worker", "engine failure notify ops console schedule", "", "database/sql", "puts the parts of one process together: it decides nothing"},
	{"internal/probe", "-", "", "database/sql log log/slog", "a health check over HTTP, separate so that the engine does not import net/http"},
	{"internal/check", "-", "", "os net net/http database/sql log log/slog", "validates values: every package may use it"},
	{"internal/decode", "-", "github.com/go-json-experiment/json", "os net net/http database/sql log log/slog", "decodes arguments as encoding/json does, at a lower cost"},
	{"store", "", "", "os net net/http database/sql log log/slog", "the contract of stores: it names no database"},
	{"store/anystore", "store/sqlite store/postgres store/internal/sqltext", "", "", "opens a store by its address, and knows the newest schema"},
	{"store/internal/sqltext", "", "", "net/http database/sql log log/slog", "SQL texts, and helpers that both databases share"},
	{"store/internal/lane", "", "", "os net net/http database/sql log log/slog", "the claim order and the effect of holds are the same on every database"},
	{"store/internal/rule", "", "", "os net net/http database/sql log log/slog", "what an operator may do and the text of a refusal are the same on every database"},
	{"store/internal/inspect", "store/internal/sqltext store/internal/rule", "", "net/http database/sql log log/slog", "read queries are the same on every database"},
	{"store/internal/endhint", "", "", "os net net/http database/sql log log/slog", "callers that wait for the end of a job learn of it the same way from every store"},
	{"store/sqlite", "internal/dutypace store/internal/sqltext store/internal/inspect store/internal/lane store/internal/rule store/internal/endhint", "zombiezen.com/go/sqlite modernc.org/sqlite modernc.org/libc", "net/http log", "persists; decisions are made in failure, jobs run in engine"},
	{"store/postgres", "store/internal/sqltext store/internal/inspect store/internal/lane store/internal/rule store/internal/endhint", "github.com/jackc/pgx/v5", "net/http log", "persists; decisions are made in failure, jobs run in engine"},
	{"store/storetest", "store/storetest", "pgregory.net/rapid github.com/google/go-cmp", "net/http database/sql", "conformance tests hold for every store, so they import none"},
	{"apikey", "", "", "os net net/http database/sql log log/slog", "what a key is and permits is pure: any caller can store and check keys"},
	{"ops", "failure schedule duty apikey notify/subscription", "", "net/http database/sql log", "operates through the role interfaces of a store, local or remote"},
	{"internal/api", "ops apikey duty schedule failure notify/subscription", "github.com/go-json-experiment/json", "database/sql log log/slog", "routes and wire format: it translates and makes no decisions"},
	{"client", "internal/api ops apikey duty schedule failure notify/subscription", "", "database/sql log log/slog", "calls a server: it translates and makes no decisions"},
	{"server", "internal/api ops apikey duty schedule failure engine notify/subscription notify/sse internal/limit", "go.yaml.in/yaml/v3", "database/sql", "authenticates requests and calls ops"},
	{"internal/safehttp", "-", "", "database/sql log", "the only HTTP client for addresses that users chose"},
	{"internal/secret", "-", "", "net net/http database/sql log log/slog", "looks up secrets by name: any caller can use it"},
	{"internal/jobkind", "", "", "net/http database/sql log", "what the built-in kinds have in common"},
	{"kind", "engine failure internal/safehttp internal/secret internal/jobkind", "golang.org/x/sys", "database/sql", "kinds that need no Go code: an HTTP call, a program"},
	{"telemetry", "engine ops failure duty", "github.com/prometheus/client_golang github.com/prometheus/client_model go.opentelemetry.io/otel", "database/sql", "metrics and traces, a module so that only its users have its libraries"},
	{"console", "ops apikey duty schedule failure notify/subscription", "", "database/sql", "pages: it translates and makes no decisions"},
	{"notify", "engine failure internal/secret notify/subscription", "", "database/sql", "deliveries are jobs"},
	{"notify/subscription", "", "", "os net net/http database/sql log log/slog", "subscriptions are values: any caller can store and match them"},
	{"notify/webhook", "failure internal/safehttp notify", "", "database/sql", "one sink"},
	{"notify/mail", "failure notify", "github.com/wneessen/go-mail", "database/sql", "one sink, a module so that only its users have its library"},
	{"notify/nats", "failure notify", "github.com/nats-io/nats.go", "database/sql", "one sink, a module so that only its users have its library"},
	{"notify/sse", "notify", "", "database/sql", "the feed over HTTP"},
	{"cmd", "*", "github.com/spf13/cobra github.com/coreos/go-systemd/v22 go.opentelemetry.io/otel golang.org/x/term", "", "wires packages together"},
	{"cmd/internal/inbox", "-", "github.com/emersion/go-smtp github.com/standard-webhooks/standard-webhooks", "", "real receivers of mail and webhooks for tests"},
	{"cmd/internal/chaos", "*", "github.com/jackc/pgx/v5 zombiezen.com/go/sqlite modernc.org/sqlite golang.org/x/sync", "", "fault injection: it may import everything"},
	{"internal/config", "-", "", "net net/http database/sql log log/slog", "the settings in one table: it reads them and makes no decisions"},
	{"examples", "*", "github.com/jackc/pgx/v5 modernc.org/sqlite", "", "shows what a user of the library writes"},
	{"apps/internal/events", "internal/limit notify/sse apps/internal/web", "", "database/sql", "streams the events of a store to the clients of an application"},
	{"apps/internal/child", "-", "golang.org/x/sys", "net net/http database/sql log log/slog", "runs other programs: it knows nothing of what they do"},
	{"apps/internal/egress", "internal/safehttp", "", "database/sql", "a proxy below programs that run what others wrote: it knows nothing of jobs"},
	{"apps/internal/blob", "-", "github.com/minio/minio-go/v7", "database/sql", "stores files in a folder or a bucket and knows nothing of jobs"},
	{"apps/internal/pdf", "-", "github.com/pdfcpu/pdfcpu golang.org/x/text golang.org/x/sys", "net/http database/sql", "reads untrusted PDFs in a separate process"},
	{"apps/internal/setting", "internal/config", "", "net/http database/sql log log/slog", "reads the settings of an application from the environment"},
	{"apps/internal/keyring", "apikey ops internal/limit", "", "net/http database/sql log log/slog", "checks the API keys of an application"},
	{"apps/internal/web", "internal/limit", "", "database/sql", "what the HTTP servers of applications share: it knows nothing of jobs"},
	{"apps/internal/database", "store/anystore store/sqlite", "github.com/jackc/pgx/v5 modernc.org/sqlite", "net/http log log/slog", "an application's own tables in the database of its jobs"},
	{"apps/internal/notice", "failure internal/safehttp notify notify/mail notify/subscription apps/internal/setting", "", "database/sql log log/slog", "sends mails and webhooks once; the engine retries"},
	{"apps/internal/stream", "-", "github.com/nats-io/nats.go", "os net/http database/sql log log/slog", "a connection to streams: it knows nothing of what they contain"},
	{"apps/internal/account", "internal/limit apps/internal/database", "golang.org/x/crypto", "database/sql log log/slog", "users, organisations, sessions and API keys: it knows nothing of jobs"},
	{"apps/internal", "internal/testprograms", "", "database/sql", "shared by applications and their tests; imports no application"},
	{"apps/convert/gateway", "apps/internal/pdf", "go.yaml.in/yaml/v3", "database/sql", "an ordinary HTTP service: it knows nothing of jobs"},
	{"apps/convert", "internal/config engine failure apikey apps/internal/events ops internal/probe store/anystore telemetry internal/limit apps/internal/blob apps/internal/web apps/internal/keyring apps/internal/setting apps/internal/command apps/convert/gateway", "github.com/prometheus/client_golang", "database/sql", "an application: it uses the public packages and no other application"},
	{"apps/fetchbox/manifest", "apps/fetchbox/code", "", "os net database/sql log log/slog", "reads and checks manifests: it knows nothing of jobs"},
	{"apps/fetchbox/deadletter", "apps/internal/stream apps/fetchbox/deadletter", "github.com/nats-io/nats.go github.com/nats-io/nats-server/v2 google.golang.org/protobuf", "net/http database/sql log log/slog", "dead letters in a stream of NATS"},
	{"apps/fetchbox/ledger", "", "go.etcd.io/bbolt", "net net/http database/sql log log/slog", "snapshots of jobs, a function of the event feed"},
	{"apps/fetchbox/replay", "apps/fetchbox/deadletter failure/redrive", "", "net net/http database/sql log log/slog", "replays dead letters"},
	{"apps/fetchbox", "engine apikey ops store/anystore telemetry internal/safehttp kind/execjob apps/internal apps/fetchbox", "github.com/prometheus/client_golang github.com/nats-io/nats.go go.yaml.in/yaml/v3", "database/sql", "an application: it reads the settings and wires packages together; it uses the public packages and no other application"},
	{"apps/fetchbox/work", "engine failure apps/internal/blob apps/fetchbox/code apps/fetchbox/fetch apps/fetchbox/handler apps/fetchbox/manifest apps/fetchbox/spool apps/fetchbox/upload", "", "database/sql", "the jobs and their handlers: it answers no request"},
	{"apps/fetchbox/refusal", "apps/internal/web apps/fetchbox/code apps/fetchbox/deadletter apps/fetchbox/manifest", "", "database/sql", "the answers to requests that cannot be served; every package that answers requests uses it"},
	{"apps/fetchbox/access", "apikey apps/internal/keyring apps/fetchbox/code apps/fetchbox/refusal", "", "database/sql", "finds who sent a request: it knows nothing of jobs"},
	{"apps/fetchbox/intake", "internal/limit apps/fetchbox/code apps/fetchbox/fetch apps/fetchbox/handler apps/fetchbox/manifest apps/fetchbox/proxy apps/fetchbox/refusal apps/fetchbox/work", "", "database/sql", "stores manifests; work carries them out"},
	{"apps/fetchbox/view", "apps/fetchbox/code apps/fetchbox/deadletter apps/fetchbox/ledger apps/fetchbox/refusal apps/fetchbox/replay apps/fetchbox/work", "", "database/sql", "reads what the API and the pages show, and changes nothing"},
	{"apps/fetchbox/api", "ops apps/internal/web apps/fetchbox/access apps/fetchbox/code apps/fetchbox/deadletter apps/internal/events apps/fetchbox/intake apps/fetchbox/proxy apps/fetchbox/refusal apps/fetchbox/replay apps/fetchbox/spool apps/fetchbox/view", "", "database/sql", "routes: it translates and makes no decisions"},
	{"apps/fetchbox/pages", "ops apps/internal/web apps/fetchbox/access apps/fetchbox/code apps/fetchbox/deadletter apps/internal/events apps/fetchbox/intake apps/fetchbox/manifest apps/fetchbox/proxy apps/fetchbox/refusal apps/fetchbox/replay apps/fetchbox/spool apps/fetchbox/upload apps/fetchbox/view apps/fetchbox/work", "", "database/sql", "pages: it translates and makes no decisions"},
	{"apps/fetchbox/code", "failure", "", "os net net/http database/sql log log/slog", "the codes of FetchBox, which all its packages share"},
	{"apps/fetchbox/spool", "failure apps/fetchbox/code", "golang.org/x/sys", "net net/http database/sql", "files on disk: it knows nothing of downloads"},
	{"apps/fetchbox/proxy", "failure internal/safehttp apps/fetchbox/code", "", "database/sql", "the ways to a source; it reads no body"},
	{"apps/fetchbox/fetch", "failure internal/safehttp apps/fetchbox/code apps/fetchbox/proxy apps/fetchbox/spool", "golang.org/x/net", "database/sql", "one download; the engine retries"},
	{"apps/fetchbox/bench", "", "", "", "a benchmark: all of it is tests"},
	{"apps/fetchbox/fetch/hostiletest", "apps/fetchbox/code apps/fetchbox/fetch", "", "database/sql", "servers for tests and the benchmark"},
	{"apps/fetchbox/handler", "failure kind/execjob apps/fetchbox/code apps/fetchbox/spool", "golang.org/x/image", "net net/http database/sql", "inspects untrusted files and calls nothing"},
	{"apps/fetchbox/upload", "failure apps/internal/blob apps/fetchbox/code apps/fetchbox/spool", "", "net net/http database/sql", "one upload; the engine retries"},
	{"apps/screenshot/code", "failure", "", "os net net/http database/sql log log/slog", "the codes of the screenshot service, which all its packages share"},
	{"apps/screenshot/chromium", "apps/internal/child", "github.com/chromedp/cdproto golang.org/x/sys", "net/http database/sql log", "one process of Chromium and the connection to it: it knows nothing of pictures"},
	{"apps/screenshot/shot", "apps/internal/egress", "golang.org/x/net", "os database/sql log log/slog", "what a picture shows: values and their checks"},
	{"apps/screenshot/stitch", "-", "", "os net net/http database/sql log log/slog", "works on pictures and calls nothing"},
	{"apps/screenshot/browser", "internal/safehttp apps/internal/egress apps/screenshot/chromium apps/screenshot/code apps/screenshot/shot apps/screenshot/stitch", "github.com/chromedp/cdproto golang.org/x/image golang.org/x/sys", "database/sql", "takes pictures with browsers; the engine retries"},
	{"apps/screenshot/bench", "", "", "", "a benchmark: all of it is tests"},
	{"apps/screenshot/browser/hostiletest", "apps/screenshot/code apps/screenshot/shot", "", "database/sql", "pages for tests and the benchmark"},
	{"apps/screenshot/credit", "apps/internal/database", "", "os net net/http database/sql log log/slog", "the ledger of credits: it knows nothing of pictures"},
	{"apps/screenshot/stream", "failure apps/internal/stream apps/screenshot/service", "github.com/nats-io/nats.go", "os net/http database/sql log log/slog", "publishes events; the engine retries"},
	{"apps/screenshot/service", "internal/safehttp engine failure ops apps/internal/blob apps/internal/database apps/internal/notice apps/screenshot/browser apps/screenshot/code apps/screenshot/credit apps/screenshot/shot", "go.yaml.in/yaml/v3", "database/sql", "the service without its faces"},
	{"apps/screenshot/api", "internal/limit failure ops apps/internal/account apps/internal/blob apps/internal/database apps/internal/web apps/screenshot/code apps/screenshot/credit apps/screenshot/service apps/screenshot/shot", "", "database/sql", "the HTTP API: it translates and makes no decisions"},
	{"apps/screenshot/site", "internal/limit apps/internal/events ops apps/internal/account apps/internal/web apps/screenshot/api apps/screenshot/code apps/screenshot/credit apps/screenshot/service apps/screenshot/shot", "", "database/sql", "the pages: they translate and make no decisions"},
	{"apps/screenshot", "engine failure failure/breaker ops store/anystore telemetry internal/safehttp apps/internal apps/screenshot", "github.com/prometheus/client_golang", "database/sql", "an application: it uses the public packages and no other application"},
	{"apps/watermark/code", "failure apps/internal/child", "", "os net net/http database/sql log log/slog", "the codes of the watermark service, which all its packages share"},
	{"apps/watermark/fourier", "-", "", "os net net/http database/sql log log/slog", "a transform: numbers in, numbers out"},
	{"apps/watermark/mark", "-", "", "os net net/http database/sql log log/slog", "the pattern follows from a secret: it can be made and read anywhere"},
	{"apps/watermark/detect", "apps/watermark/fourier apps/watermark/mark", "golang.org/x/image", "os net net/http database/sql log log/slog", "reads marks in pictures: it knows nothing of videos, files and jobs"},
	{"apps/watermark/media", "apps/internal/child apps/watermark/code apps/watermark/detect apps/watermark/mark", "golang.org/x/image golang.org/x/sys", "net net/http database/sql log log/slog", "runs FFmpeg; the engine retries"},
	{"apps/watermark/campaign", "engine failure ops apps/internal/database apps/watermark/code apps/watermark/detect apps/watermark/mark apps/watermark/media", "", "net net/http database/sql log", "campaigns, their jobs and downloads: it knows nothing of pages"},
	{"apps/watermark/site", "failure internal/limit apps/internal/account apps/internal/web apps/watermark/campaign apps/watermark/code", "", "database/sql", "pages: it translates and makes no decisions"},
	{"apps/watermark/migrate", "apps/internal/account apps/internal/database apps/watermark/campaign", "", "net net/http database/sql log log/slog", "reads the database of another program"},
	{"apps/watermark", "engine ops store/anystore internal/safehttp apps/internal apps/watermark", "", "database/sql", "an application: it uses the public packages and no other application"},
	{"apps/watermark/bench", "", "", "", "a benchmark: all of it is tests"},
	{"internal/browsertest", "internal/testprograms", "github.com/chromedp", "database/sql", "a real browser for tests, in a module of its own so that users of the library do not download it"},
	{"internal/fixture", "failure ops schedule", "", "net/http database/sql", "a store with failed jobs, made by the same calls that a worker makes"},
	{"internal/dutypace", "-", "", "os net net/http database/sql log log/slog", "tests in virtual time stretch the intervals of duties; engines of applications have no pace"},
	{"internal/limit", "-", "", "database/sql log", "limits requests by caller; shared by the server and the applications"},
	{"internal/archtest", "-", "", "", "the checks import nothing that they check"},
	{"internal/interop", "-", "", "", "tests with independent implementations: its files without tests only say so"},
	{"internal/testprograms", "-", "", "", "third-party programs that tests run"},
	{"internal/pgtest", "internal/testprograms", "github.com/jackc/pgx/v5", "", "a PostgreSQL server for tests"},
	{"internal", "*", "github.com/jackc/pgx/v5 zombiezen.com/go/sqlite modernc.org/sqlite pgregory.net/rapid github.com/google/go-cmp", "", "test tools: they may import everything"},
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	for _, s := range files(t, ".go") {
		if !s.isTest() {
			report(t, badImports(s))
		}
	}
}

func badImports(s source) (bad []violation) {
	r, ok := importRuleOf(s.folder())
	if !ok {
		return []violation{s.violation(1, "the folder %s has no import rule: add one to internal/archtest/imports_test.go, with the reason", s.folder())}
	}
	for _, spec := range s.file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if !r.allows(name, s.folder()) {
			bad = append(bad, s.violation(s.line(spec), "%s must not import %q: %s. Move the code to a package that may import it, or pass in what is needed", s.folder(), name, r.why))
		}
	}
	return bad
}

// importRuleOf finds the rule of a folder, or of the nearest folder above it that has one. The rule of the root package holds for that package alone.
func importRuleOf(folder string) (importRule, bool) {
	for {
		for _, r := range importRules {
			if r.path == folder {
				return r, true
			}
		}
		cut := strings.LastIndex(folder, "/")
		if cut < 0 {
			return importRule{}, false
		}
		folder = folder[:cut]
	}
}

func (r importRule) allows(name, from string) bool {
	if inner, ok := strings.CutPrefix(name, module); ok {
		inner = strings.TrimPrefix(inner, "/")
		switch {
		case inner == "internal/check":
			return from != inner
		case inner == "" || inner == "store" && from != "store" || r.ours == "*":
			return r.ours != "-" && !under(inner, "apps")
		default:
			return inner != from && (anyUnder(inner, r.ours) || under(inner, r.path) && r.path != ".")
		}
	}
	if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") {
		return anyUnder(name, r.outside)
	}
	return !contains(r.never, name)
}

func under(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func anyUnder(name, folders string) bool {
	for _, folder := range strings.Fields(folders) {
		if under(name, folder) {
			return true
		}
	}
	return false
}

func contains(words, word string) bool {
	for _, w := range strings.Fields(words) {
		if w == word {
			return true
		}
	}
	return false
}
