package archtest

import (
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfastdev/holdfast"

// A room says what the code of a folder, tests aside, may lean on. Rooms below it that have no line of their own share its
// line.
type room struct {
	path    string
	ours    string // rooms of ours it may import, besides the root; "-" not even the root; "*" all but the guests
	outside string // modules of others it may import
	never   string // what it must not import even of the standard library
	why     string
}

var rooms = []room{
	{".", "-", "", "os net net/http database/sql log log/slog", "the root is vocabulary: everybody speaks it, so it leans on nobody"},
	{"failure", "", "", "os net net/http database/sql log log/slog math/rand math/rand/v2", "decisions are pure, so that they can be tabled, tested and explained"},
	{"failure/breaker", "-", "", "os net net/http database/sql log log/slog math/rand math/rand/v2", "a circuit is a value; whoever stores it may be anybody"},
	{"failure/policy", "failure", "go.yaml.in/yaml/v3", "os net net/http database/sql log log/slog math/rand math/rand/v2", "policies as data: reading and trying them out is pure too"},
	{"failure/catalog", "failure", "", "os net net/http database/sql log log/slog math/rand math/rand/v2", "which codes exist is put together from records; whoever keeps them may be anybody"},
	{"schedule", "", "github.com/netresearch/go-cron", "os net net/http database/sql log log/slog", "when something is due is pure, so that it can be tried out"},
	{"duty", "", "", "os net net/http database/sql log log/slog", "what people order of duties and what duties report; whoever keeps them may be anybody"},
	{"engine", "failure schedule duty", "", "net/http database/sql log", "the engine runs near a file or far from a server and cannot tell which"},
	{"internal/probe", "-", "", "database/sql log log/slog", "a question over HTTP, apart so that engines need not know HTTP"},
	{"store", "store/sqlite store/postgres", "", "", "opens a store by its address and knows nothing else"},
	{"store/internal/sqltext", "", "", "net/http database/sql log log/slog", "texts, and what is the same text for everybody"},
	{"store/internal/lane", "", "", "os net net/http database/sql log log/slog", "whose turn it is and what a hold lets through is the same on every database"},
	{"store/internal/rule", "", "", "os net net/http database/sql log log/slog", "what an operator may do and how a refusal reads is the same on every database"},
	{"store/internal/inspect", "store/internal/sqltext store/internal/rule", "", "net/http database/sql log log/slog", "questions are asked the same way of every database"},
	{"store/sqlite", "store/internal/sqltext store/internal/inspect store/internal/lane store/internal/rule", "zombiezen.com/go/sqlite modernc.org/sqlite modernc.org/libc", "net/http log", "remembers; deciding and running are done elsewhere"},
	{"store/postgres", "store/internal/sqltext store/internal/inspect store/internal/lane store/internal/rule", "github.com/jackc/pgx/v5", "net/http log", "remembers; deciding and running are done elsewhere"},
	{"store/storetest", "store/storetest", "pgregory.net/rapid github.com/google/go-cmp", "net/http database/sql", "laws hold for every store, so they know none"},
	{"apikey", "", "", "os net net/http database/sql log log/slog", "what a key is and may is pure, so that whoever keeps or asks may be anybody"},
	{"ops", "failure schedule duty apikey notify/subscription", "", "net/http database/sql log", "intervenes through the roles a store plays, near or far"},
	{"api", "ops apikey duty schedule failure notify/subscription", "github.com/go-json-experiment/json", "database/sql log log/slog", "the routes, what travels, and a client: it translates and decides nothing"},
	{"server", "api ops apikey duty schedule failure engine notify/subscription notify/sse internal/limit", "go.yaml.in/yaml/v3 golang.org/x/time", "database/sql", "a face: it lets in who may come in, and calls the desk"},
	{"safehttp", "-", "code.dny.dev/ssrf", "database/sql log", "the one way out to addresses that others chose"},
	{"internal/secret", "-", "", "net net/http database/sql log log/slog", "secrets by their names: whoever needs one may be anybody"},
	{"kind", "engine failure safehttp internal/secret", "golang.org/x/sys", "database/sql", "kinds of jobs that need no code: a call, a program"},
	{"telemetry", "engine ops failure duty", "github.com/prometheus/client_golang go.opentelemetry.io/otel", "database/sql", "counts and traces; nobody but the command needs it"},
	{"console", "ops apikey duty schedule failure notify/subscription", "", "database/sql", "a face: it translates and decides nothing"},
	{"notify", "engine failure internal/secret notify/subscription", "", "database/sql", "deliveries are jobs themselves"},
	{"notify/subscription", "", "", "os net net/http database/sql log log/slog", "who wants to know what: pure, so that whoever asks may be anybody"},
	{"notify/webhook", "failure safehttp notify", "github.com/standard-webhooks/standard-webhooks", "database/sql", "one sink, apart so that only its users carry what it leans on"},
	{"notify/mail", "failure notify", "github.com/wneessen/go-mail", "database/sql", "one sink, apart so that only its users carry what it leans on"},
	{"notify/nats", "failure notify", "github.com/nats-io/nats.go", "database/sql", "one sink, apart so that only its users carry what it leans on"},
	{"notify/sse", "notify", "", "database/sql", "a face of the feed over HTTP"},
	{"cmd", "*", "github.com/spf13/cobra github.com/coreos/go-systemd/v22 go.opentelemetry.io/otel golang.org/x/term", "", "only wires"},
	{"config", "-", "", "net net/http database/sql log log/slog", "what can be set, in one table: it reads and decides nothing"},
	{"examples", "*", "github.com/jackc/pgx/v5", "", "shows what a user would write"},
	{"apps/internal/blob", "-", "github.com/minio/minio-go/v7", "database/sql", "keeps files, in a folder or in a bucket, and knows of nothing else"},
	{"apps/internal/pdf", "-", "github.com/pdfcpu/pdfcpu golang.org/x/text golang.org/x/sys", "net/http database/sql", "reads PDFs of strangers, in a process of its own"},
	{"apps/internal", "internal/testprograms", "", "database/sql", "what applications and their tests share; none of it knows an application"},
	{"apps/convert/gateway", "apps/internal/pdf", "go.yaml.in/yaml/v3", "database/sql", "an ordinary HTTP service: it knows nothing of jobs"},
	{"apps/convert", "config engine failure apikey notify/sse ops internal/probe store telemetry internal/limit apps/internal/blob apps/convert/gateway", "github.com/prometheus/client_golang", "database/sql", "a guest: it uses what every user of the library can, and no other guest"},
	{"internal/browsertest", "internal/testprograms", "github.com/chromedp", "database/sql", "a real browser for tests, in a module of its own: nobody who uses the library carries it"},
	{"internal/fixture", "failure ops schedule", "", "net/http database/sql", "a store in trouble, made the way it would be in earnest"},
	{"internal/limit", "-", "golang.org/x/time", "database/sql log", "counts what callers do; the server and the applications count alike"},
	{"internal/archtest", "-", "", "", "the plan depends on nothing it judges"},
	{"internal/inbox", "-", "github.com/emersion/go-smtp github.com/standard-webhooks/standard-webhooks", "", "real receivers for the demo and for tests"},
	{"internal/testprograms", "-", "", "", "programs of others that tests run"},
	{"internal/pgtest", "internal/testprograms", "github.com/jackc/pgx/v5", "", "a server for the tests of everybody"},
	{"internal", "*", "github.com/jackc/pgx/v5 zombiezen.com/go/sqlite modernc.org/sqlite pgregory.net/rapid github.com/google/go-cmp golang.org/x/sync github.com/standard-webhooks/standard-webhooks", "", "proof: it may look at everything"},
}

func TestEveryRoomLeansOnlyOnWhatThePlanAllows(t *testing.T) {
	for _, s := range files(t, ".go") {
		if !s.isTest() {
			report(t, badImports(s))
		}
	}
}

func badImports(s source) (bad []complaint) {
	r, ok := roomOf(s.room())
	if !ok {
		return []complaint{s.complain(1, "the folder %s has no line in the plan: give it one in internal/archtest/rooms_test.go, with the reason", s.room())}
	}
	for _, spec := range s.file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if !r.allows(name, s.room()) {
			bad = append(bad, s.complain(s.line(spec), "%s must not import %q: %s. Move the code to the room that may, or pass in what is needed", s.room(), name, r.why))
		}
	}
	return bad
}

// roomOf finds the line of a folder, or of the nearest folder above it that has one. Only the root's is for it alone.
func roomOf(folder string) (room, bool) {
	for {
		for _, r := range rooms {
			if r.path == folder {
				return r, true
			}
		}
		cut := strings.LastIndex(folder, "/")
		if cut < 0 {
			return room{}, false
		}
		folder = folder[:cut]
	}
}

func (r room) allows(name, from string) bool {
	if inner, ok := strings.CutPrefix(name, module); ok {
		inner = strings.TrimPrefix(inner, "/")
		switch {
		case inner == "" || r.ours == "*":
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
