package sqlite_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/store/internal/sqltext"
	"github.com/holdfastdev/holdfast/store/storetest"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// plans is the table of how statements reach their rows. A new statement gets a line here.
var plans = storetest.Plans{
	Want: map[string]string{
		"begin": "", "look": "", "commit": "", "rollback": "", "savepoint": "", "savepoint-undo": "", "savepoint-release": "", "data-version": "",

		"lane-find": "", "lane-add": "", "lane-list": "", "claim-kinds": "", "present": "", "absent": "", "kind-keep": "",
		"hold-find": "", "hold-add": "", "hold-level": "", "hold-drop": "",

		"idempotency-add": "", "unique-add": "", "job-add": "", "ready-add": "", "later-add": "", "expiry-add": "",
		"idempotency-find": "idempotency(owner,key)",
		"idempotency-bind": "idempotency(owner,key)",
		"unique-find":      "unique(owner,kind,key)",

		"claim-shares":     "record(room)",
		"claim-lines":      "ready(lane)",
		"claim-probe":      "ready(lane)",
		"claim-priorities": "ready(lane)",
		"claim-live":       "lease(all)",
		"claim-lanes":      "job(id)",
		"claim-aside":      "ready(lane,priority,job) job(id)",

		"claim-peek":   "ready(lane,priority,job) job(id)",
		"claim-stands": "ready(lane)",
		"claim-facts":  "job(id) carry(job)",
		"claim-read":   "ready(lane,priority,job) job(id) carry(job)",
		"claim-stand":  "ready(lane,priority,job)",
		"claim-leave":  "ready(lane,priority,job)",
		"facts":        "job(id) carry(job)",

		"lease-add":    "",
		"lease-find":   "lease(id)",
		"lease-shrink": "lease(id)",
		"lease-drop":   "lease(id)",
		"lease-of":     "lease(all)",
		"lease-silent": "lease(all) sorted",
		"renew-lease":  "lease(id)",
		"cancel-list":  "cancel(all)",

		"settle-complete": "", "settle-finish": "", "settle-attempt": "", "later-again": "", "note-progress": "", "note-checkpoint": "",
		"settle-any":       "cancel(first) unique(first)",
		"settle-cancel":    "cancel(job)",
		"settle-said":      "attempt(job,token) finished(job)",
		"attempt-fold":     "attempt(job,token)",
		"attempt-stands":   "attempt(job,token)",
		"settle-late":      "job(id)",
		"ready-again":      "job(id)",
		"later-wait-again": "job(id)",
		"unique-free":      "unique(owner,kind,key) job(id)",

		"deadline-add": "", "error-group-add": "", "error-group-tally": "", "tally-add": "",
		"error-group-of":     "job(id)",
		"error-group-find":   "error_group(fingerprint)",
		"error-group-again":  "error_group(fingerprint)",
		"error-group-turn":   "error_group(fingerprint)",
		"error-group-triage": "error_group(fingerprint)",

		"await-news":    "ready(first) cancel(first)",
		"promote-bound": "later(due_at) job(id)",
		"promote-ready": "later(due_at,job) job(id)",
		"promote-leave": "later(due_at,job) job(id)",

		"promote-aside":       "later(hold)",
		"promote-aside-bound": "later(hold) job(id)",
		"promote-aside-ready": "later(hold,job) job(id)",
		"promote-aside-leave": "later(hold,job) job(id)",
		"deadline-due":        "deadline(at) job(id) ready(lane,priority,job) later(job)",
		"deadline-drop":       "deadline(at,job)",

		"expire-ended":  "expiry(expire_at) finished(job)",
		"expire-queued": "expiry(expire_at) job(id) ready(lane,priority,job) later(job)",
		"ready-drop":    "ready(lane,priority,job) job(id)",
		"later-drop":    "later(job)",

		"operate-since": "", "operate-event": "", "operate-tell": "", "operate-cancel": "", "record-add": "", "redriven-add": "",
		"record-find":    "record(room,name)",
		"record-keep":    "record(room,name)",
		"record-drop":    "record(room,name)",
		"claim-holds":    "feed(rowid)",
		"restore-floor":  "feed(rowid)",
		"restore-raise":  "feed(rowid)",
		"edit-aside":     "later(job)",
		"edit-job":       "job(id)",
		"edit-time":      "job(id)",
		"edit-count":     "feed(rowid)",
		"redrive-args":   "job(id)",
		"redrive-patch":  "job(id)",
		"redrive-move":   "job(id)",
		"redriven-find":  "redriven(redrive,job)",
		"redriven-end":   "redriven(redrive,job)",
		"redriven-ended": "redriven(redrive) finished(job)",
		"redriven-count": "redriven(redrive)",

		"operate-job":      "job(id)",
		"operate-place":    "ready(lane,priority,job) later(job) finished(job)",
		"operate-unfinish": "finished(job)",
		"operate-discard":  "finished(job)",
		"operate-ahead":    "ready(lane,priority,job)",

		"listen-add": "", "outbox-add": "", "group-add": "", "after-add": "", "after-finish": "", "later-wait": "", "tombstone-add": "", "purge-count": "",
		"artifact-keep": "", "artifact-expire": "",
		"listen-queued": "listen(event)",
		"outbox-head":   "feed(rowid)",
		"feed-stand":    "feed(rowid)",
		"feed-purged":   "feed(rowid)",
		"chain-open":    "event(link)",
		"chain-seal":    "event(rowid)",
		"chain-end":     "feed(rowid)",
		"chain-anchor":  "feed(rowid)",

		"forget-pages":      "outbox(rowid) feed(rowid)",
		"forget-feed":       "outbox(rowid)",
		"forget-lines":      "event(link) feed(rowid)",
		"forget-mark":       "event(subject)",
		"forget-story":      "event(link)",
		"forget-tally":      "error_tally(fingerprint,step,kind,queue,dependency,version)",
		"forget-trends":     "tally(step)",
		"forget-tombstones": "tombstone(job) tombstone(purged_at)",

		"group-state":        "group(id)",
		"group-seal":         "group(id)",
		"group-attend":       "group(id)",
		"group-calm":         "group(id)",
		"group-live":         "group(id)",
		"group-find":         "group(id)",
		"group-settle":       "group(id)",
		"group-end":          "group(id)",
		"group-stir":         "group(id)",
		"group-reopen":       "group(id)",
		"group-inside":       "group(parent)",
		"group-end-inside":   "group(parent)",
		"group-live-inside":  "group(parent)",
		"group-first-live":   "job(group_id,id) finished(job)",
		"group-live-members": "job(group_id,id) finished(job) cancel(job)",
		"group-count":        "job(group_id) finished(job) tombstone(group_id) group(parent)",
		"group-again":        "job(group_id) finished(job)",
		"after-upstream":     "job(id) finished(job)",
		"after-judge":        "after(job) finished(job) tombstone(job)",
		"after-followers":    "after(upstream) later(job)",
		"after-waiting":      "job(group_id) later(job)",
		"after-release":      "later(job)",
		"conclude-pages":     "outbox(rowid)",
		"conclude-members":   "job(id)",
		"conclude-attended":  "group(id)",
		"conclude-overdue":   "group(expire_at)",
		"conclude-move":      "feed(rowid)",

		"purge-look":        "finished(job) job(id) group(id) artifact(job)",
		"purge-stands":      "finished(job) job(id) group(id) artifact(job)",
		"purge-redriven":    "redriven(job) finished(job)",
		"purge-idempotency": "idempotency(owner,key) job(id)",
		"purge-unique":      "unique(owner,kind,key) job(id)",
		"purge-expiry":      "expiry(expire_at,job) job(id)",
		"purge-attempts":    "attempt(job)",
		"purge-late":        "late(job)",
		"purge-carry":       "carry(job)",
		"purge-cancel":      "cancel(job)",
		"purge-after":       "after(job)",
		"purge-before":      "after(upstream)",
		"purge-artifacts":   "artifact(job)",
		"purge-finished":    "finished(job)",
		"purge-jobs":        "job(id)",

		"inspect holds": "", "inspect workers": "", "inspect kinds": "",
		"inspect jobs":     "job(id) ready(lane,priority,job) later(job) leased(all) lease(all) finished(job) cancel(job) carry(job) attempt(job) sorted",
		"inspect records":  "record(room)",
		"inspect story":    "event(subject)",
		"inspect attempts": "attempt(job)",
		"inspect late":     "late(job) sorted",
		"inspect events":   "event(job)",
		"inspect ahead":    "job(id) ready(lane,priority,job)",
		"inspect trends":   "tally(step) sorted",

		"inspect strands":          "ready(lane) ready(lane,priority) job(id)",
		"inspect strands of lines": "ready(lane)",
		"inspect depth of lines":   "ready(lane)",
		"inspect queues":           "",
		"inspect depths":           "later(due_at) job(id) leased(all) lease(all) finished(job) sorted",
		"inspect codes":            "finished(code)",
		"inspect error trends":     "error_tally(fingerprint,step) sorted",
		"inspect error hours":      "error_tally(fingerprint,step) sorted",
		"inspect error ends":       "error_group(fingerprint) finished(fingerprint) attempt(fingerprint) finished(job) sorted",

		"inspect after":         "after(job)",
		"inspect artifacts":     "artifact(job)",
		"inspect due artifacts": "artifact(expire_at)",
		"inspect empty chain":   "feed(rowid) event(link) event(subject)",
		"inspect group names":   "group(id)",
		"inspect lines":         "event(rowid)",
		"inspect told":          "job(id) attempt(job,token) finished(job) tombstone(job)",
		"inspect tombstone":     "tombstone(job)",
	},
	Free: map[string]string{
		"audit*":         "the audit reads everything, on request",
		"overdue*":       "the audit reads everything, on request",
		"inspect counts": "it counts everything",
		"forget-tallies": "a slow sweep looks through them, a few at a time",
		"listen-list":    "listeners are few",

		"restore-ready":    "a restore goes through all that is live, before anybody works with it",
		"restore-later":    "a restore goes through all that is live, before anybody works with it",
		"restore-deadline": "a restore goes through all that is live, before anybody works with it",
		"listen-drop":      "listeners are few",

		"inspect members":      "it counts the members of one group, and looks through the leases, which are few",
		"inspect feed":         "the feed has one row, and its pages are found by their numbers",
		"inspect chain":        "the feed has one row, and the lines are found by their links",
		"inspect purge counts": "as few rows as there are rules, kinds and codes",
		"inspect newest":       "it reads one row, from the end of the key",

		"inspect experience":     "it sums up everything within a time, on request",
		"inspect first attempts": "it sums up everything within a time, on request",
	},
}

// SQLite plans by what it was told of the tables: what was true when they were empty, nothing, or what is.
func TestEveryStatementFindsItsRowsByKeyInAMillion(t *testing.T) {
	path := written(t)
	f := &full{t, raw(t, path)}
	f.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -100000")
	f.run("DELETE FROM holdfast_job; DELETE FROM holdfast_ready; DELETE FROM holdfast_lane; ANALYZE")
	for _, text := range floods {
		f.run(text)
	}
	texts := sqltext.Load("sqlite")
	check := func(t *testing.T) { plans.Check(t, texts, f.plan) }
	t.Run("with rows that were counted before they came", check)
	f.run("DROP TABLE sqlite_stat1; DROP TABLE sqlite_stat4")
	t.Run("with rows that nobody counted", check)
	f.run("PRAGMA analysis_limit = 1000; ANALYZE")
	t.Run("with rows that were counted", check)
	// Few lanes invite a skip-scan: it tries every lane there is by then.
	f.run(`DROP TABLE sqlite_stat4; UPDATE sqlite_stat1 SET stat = '1000000 1000000 1000000 1' WHERE tbl = 'holdfast_ready'; ANALYZE sqlite_schema`)
	t.Run("with rows that were counted while all of them waited in one lane", check)
	t.Run("and reads little", func(t *testing.T) { readLittle(t, path, texts) })
}

// full is a file with a million rows in every table that grows.
type full struct {
	testing.TB
	conn *zombiezen.Conn
}

func (f *full) run(text string) {
	f.Helper()
	run(f, f.conn, text)
}

var (
	named   = regexp.MustCompile(`\bholdfast_(\w+)(?: (?:AS )?([a-z]\w*))?`)
	reached = regexp.MustCompile(`^(SCAN|SEARCH) (\w+)`)
	columns = regexp.MustCompile(`[a-z_]+`)
	within  = regexp.MustCompile(`^(?:MATERIALIZE|CO-ROUTINE) (holdfast_\w+)$`)
	skipped = regexp.MustCompile(`ANY\(\w+\)( AND )?`) // a skip-scan: every value of this column is tried, so it is no key
	peeked  = regexp.MustCompile(`EXISTS \(SELECT 1 FROM holdfast_(\w+)\)`)
)

// plan asks how a statement would run.
func (f *full) plan(name, text string) (p storetest.Plan) {
	if name == "inspect jobs" {
		text = "WITH page AS (SELECT id FROM holdfast_job WHERE id = $1) " + text
	}
	st, _, err := f.conn.PrepareTransient("EXPLAIN QUERY PLAN " + text)
	if err != nil {
		f.Fatalf("%s: %v", name, err)
	}
	defer st.Finalize()
	aliases := map[int]map[string]string{0: tablesOf(text)} // by the step that they are known in
	for {
		if more, err := st.Step(); err != nil || !more {
			return p
		}
		step, detail := st.ColumnInt(0), st.ColumnText(3)
		known := aliases[st.ColumnInt(1)]
		if view := within.FindStringSubmatch(detail); view != nil {
			known = tablesOf(f.viewText(view[1]))
		}
		aliases[step] = known
		p.Text += "\n    " + detail
		p.Sorted = p.Sorted || strings.Contains(detail, "TEMP B-TREE") || strings.Contains(detail, "AUTOMATIC")
		if m := reached.FindStringSubmatch(detail); m != nil && known[m[2]] != "" {
			p.Accesses = append(p.Accesses, access(known[m[2]], detail, text))
		}
	}
}

// tablesOf are the tables that a text names, by what it calls them.
func tablesOf(text string) map[string]string {
	tables := map[string]string{}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		tables["holdfast_"+m[1]] = m[1]
		tables[m[2]] = m[1]
	}
	return tables
}

func (f *full) viewText(view string) string {
	text, err := sqlitex.ResultText(f.conn.Prep("SELECT sql FROM sqlite_schema WHERE name = '" + view + "'"))
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// access reads one step. The columns stand in brackets behind the index; a search by an index that is made for the occasion
// reads everything first.
func access(table, detail, text string) storetest.Access {
	a := storetest.Access{Table: table}
	_, keys, found := strings.Cut(skipped.ReplaceAllString(detail, ""), "(")
	if found && !strings.Contains(detail, "AUTOMATIC") {
		for _, key := range columns.FindAllString(keys, -1) {
			if !slices.Contains(a.Keys, key) {
				a.Keys = append(a.Keys, key)
			}
		}
	}
	for _, m := range peeked.FindAllStringSubmatch(text, -1) {
		a.First = a.First || m[1] == table
	}
	return a
}
