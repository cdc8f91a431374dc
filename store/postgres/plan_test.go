package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/store/internal/sqltext"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// plans is the table of how statements reach their rows. A new statement gets a line here. A page is found by the number of its first
// event, which is called first and written twice here, so that it is not mistaken for the first row.
var plans = storetest.Plans{
	Want: map[string]string{
		"steer": "", "interpret": "", "interpret_whole": "", "now": "", "wake": "", "durability": "",
		"wake_missed": "ready(first) cancel(first)",

		"lane_make": "", "lane_find": "", "lane_read": "", "present": "", "leave": "", "depend": "",
		"hold_lock": "", "hold_patience": "", "hold_read": "", "kind_read": "", "hold_place": "", "hold_lift": "", "hold_fill": "",
		"share_read":  "record(room)",
		"record_make": "", "record_keep": "record(room,name)", "record_forget": "record(room,name)", "record_there": "record(room,name)",

		"enqueue": "", "enqueue_plain": "", "idempotency_take": "", "unique_take": "",
		"enqueue_landed":   "job(id)",
		"job_there":        "job(id)",
		"idempotency_find": "idempotency(owner,key)",
		"idempotency_bind": "idempotency(owner,key)",
		"unique_find":      "unique(owner,kind,key)",

		"claim":      "ready(lane) ready(ctid) job(id) carry(first) carry(job)",
		"claim_lane": "ready(lane) ready(ctid) job(id) carry(first) carry(job)",
		"take":       "ready(lane,priority) ready(ctid) job(id) carry(first) carry(job)",
		"take_turns": "ready(lane) ready(ctid) job(id) carry(first) carry(job)",
		"take_runs":  "ready(lane,priority,job) ready(ctid) job(id) carry(first) carry(job)",
		"take_keys":  "ready(lane,priority,job) ready(ctid) job(id) carry(first) carry(job)",
		"peek":       "ready(lane,priority) job(id)",
		"lines":      "ready(first) ready(lane)",
		"live":       "lease(all) job(id)",
		"set_aside":  "ready(lane,priority,job) ready(ctid) job(id)",
		"facts":      "job(id) carry(job)",

		"lease_make":    "",
		"lease_lock":    "lease(id)",
		"lease_shrink":  "lease(id)",
		"lease_drop":    "lease(id)",
		"lease_renew":   "lease(id)",
		"lease_started": "lease(id)",
		"lease_expired": "lease(all)",

		"finish": "", "attempt_add": "", "later_add": "", "late_add": "", "note": "",
		"finish gently": "", "attempt_add gently": "", "later_add gently": "", "ready_add gently": "job(id)",
		"cancel_find":  "cancel(job)",
		"cancel_drop":  "cancel(job)",
		"cancel_in":    "cancel(first) lease(id) cancel(job)",
		"unique_held":  "unique(first) lease(id) unique(job) job(id)",
		"unique_free":  "unique(job)",
		"ready_add":    "job(id)",
		"settled":      "job(id) attempt(job,token) finished(job)",
		"attempt_fold": "attempt(job,token)",

		"promote":      "later(due_at) later(ctid) job(id) later(first) later(hold)",
		"breach":       "deadline(at) deadline(ctid) job(id) ready(lane,priority,job) later(job)",
		"expiry_sweep": "expiry(expire_at) finished(job)",
		"expire":       "expiry(expire_at) job(id) ready(lane,priority,job) ready(ctid) later(job) later(ctid)",

		"redrive_lock":    "finished(job)",
		"redrive_facts":   "job(id) redriven(redrive,job)",
		"redrive_leave":   "finished(job)",
		"redrive_change":  "job(id)",
		"edit_lane":       "job(id)",
		"edit_look":       "job(id) later(job)",
		"edit_job":        "job(id)",
		"edit_time":       "job(id)",
		"edit_later":      "",
		"redrive_discard": "finished(job)",
		"redrive_begin":   "", "redrive_note": "",
		"redriven":       "redriven(redrive) finished(job)",
		"redriven_count": "redriven(redrive) sorted",

		"deadline_add": "", "error_count": "", "error_tally": "job(id)", "tally_add": "",
		"error_turn": "error_group(fingerprint)", "error_turnable": "error_group(fingerprint)", "error_stands": "error_group(fingerprint)",
		"triage": "error_group(fingerprint)",

		"begin_generation": "", "event_add": "", "cancel_add": "", "subject_event_add": "",
		"job_event_add":  "job(id) ready(lane,priority,job) later(job) lease(all) finished(job)",
		"job_owner":      "job(id)",
		"at_finished":    "finished(job)",
		"at_ready":       "job(id) ready(lane,priority,job)",
		"at_later":       "later(job)",
		"at_lease":       "lease(all)",
		"leave_finished": "finished(job)",
		"leave_ready":    "job(id) ready(lane,priority,job)",
		"leave_later":    "later(job)",
		"discard":        "finished(job)",
		"ahead":          "ready(lane,priority,job)",

		"wait_again": "job(id)",
		"group_add":  "", "after_add": "", "events_add": "", "after_cancel_note": "",
		"group_listen": "",
		"group_share":  "group(id)", "group_hold": "group(id)", "group_attend": "group(id)", "group_seal": "group(id)", "group_read": "group(id)",
		"group_owner": "group(id)", "group_end": "group(id)", "group_reopen": "group(id)", "group_seen": "group(id)", "group_settle": "group(id)",
		"group_attend_around": "group(id)", "group_take_touched": "group(id)", "group_touched": "group(id)",
		"after_stranger":  "job(id)",
		"group_line_lock": "group(id) job(id)",
		"group_broken":    "group(id) group(parent) job(group_id) finished(job) sorted",

		"conclude_lock": "", "conclude_done": "feed(one)",
		"conclude_groups":     "group(first)",
		"conclude_pages":      "feed(one) outbox(first,first)",
		"conclude_ended":      "feed(one) outbox(first,first) job(id)",
		"group_expire":        "group(expire_at) group(id)",
		"group_attended":      "group(first)",
		"after_due":           "after(upstream) later(job) job(group_id) after(job) finished(job) job(id) sorted",
		"after_lock":          "later(job)",
		"after_start":         "later(job) job(id) later(ctid)",
		"after_cancel":        "later(job)",
		"group_rest":          "job(group_id,id) finished(job) cancel(job)",
		"group_cancel_queued": "job(id) ready(lane,priority,job) later(job) ready(ctid) later(ctid) unique(job)",
		"group_cancel_leased": "lease(all)",
		"group_end_inside":    "group(parent) group(id) sorted",
		"group_left":          "job(group_id,id) finished(job) cancel(job) group(parent)",
		"group_live":          "job(group_id,id) finished(job) group(parent)",
		"group_count":         "job(group_id) finished(job) tombstone(group_id) group(parent)",

		"feed_lock": "feed(one)", "chain_moved": "feed(one)", "chain_open": "event(first)", "chain_seal": "event(id)",
		"feed_new":    "outbox(first) event(first)",
		"feed_number": "outbox(first) feed(one) outbox(id)",
		"feed_old":    "outbox(first,first)", "feed_forget": "outbox(first,first) feed(one)",
		"story_old": "event(link)", "story_forget": "event(link) feed(one)", "story_mark": "event(subject)",
		"tally_forget":     "error_tally(step) error_tally(ctid)",
		"trend_forget":     "tally(step) tally(ctid)",
		"tombstone_forget": "tombstone(purged_at) tombstone(ctid)",
		"listen_add":       "", "listen_drop": "listen(listener)",

		"purge_look":     "finished(job) job(id) group(id) artifact(job)",
		"purge_lock":     "finished(job) artifact(job)",
		"purge_bury":     "finished(job) job(id) group(id)",
		"purge_count":    "finished(job) job(id)",
		"purge_redriven": "finished(job) redriven(job)",
		"purge_keys":     "idempotency(job)", "purge_expiry": "job(id) expiry(expire_at,job)", "purge_attempt": "attempt(job)", "purge_late": "late(job)",
		"purge_carry": "carry(job)", "purge_deadline": "deadline(job)", "purge_artifact": "artifact(job)", "purge_before": "after(job)",
		"purge_behind": "after(upstream)", "purge_job": "finished(job) job(id)",
		"artifact_keep": "job(id)", "size": "",

		"inspect_holds": "", "inspect_workers": "",
		"inspect_segments":          "ready(lane) ready(lane,priority) job(id)",
		"inspect_segments_of_lines": "ready(lane)",
		"inspect_line_counts":       "ready(lane)",
		"inspect_queues":            "",
		"inspect_depths":            "later(due_at) job(id) leased(all) lease(all) finished(job) sorted",
		"inspect_failed_codes":      "finished(code)",
		"inspect_error_trends":      "error_tally(fingerprint,step) sorted",
		"inspect_error_hours":       "error_tally(fingerprint,step) sorted",
		"inspect_error_outcomes":    "error_group(fingerprint) finished(fingerprint) attempt(fingerprint) finished(job) sorted",

		"inspect_upstreams":      "after(job)",
		"inspect_artifacts":      "artifact(job)",
		"inspect_due_artifacts":  "artifact(expire_at)",
		"inspect_chain":          "event(link) event(subject) feed(first)",
		"inspect_group_names":    "group(id)",
		"inspect_story_lines":    "event(id)",
		"inspect_group_members":  "job(group_id) finished(job) later(job) lease(all) tombstone(group_id) group(parent) sorted",
		"inspect_event_details":  "job(id) attempt(job,token) finished(job) tombstone(job)",
		"inspect_tombstone":      "tombstone(job)",
		"inspect_jobs":           "job(id) ready(lane,priority,job) later(job) lease(all) finished(job) cancel(job) carry(job) attempt(job)",
		"inspect_attempts":       "attempt(job)",
		"inspect_late_results":   "late(job)",
		"inspect_job_events":     "event(job)",
		"inspect_subject_events": "event(subject)",
		"inspect_records":        "record(room)",
		"inspect_trends":         "tally(step) sorted",
		"inspect_kinds":          "",
		"inspect_newest_job":     "job(first)",

		"inspect_experience":     "attempt(job) job(id) finished(job) sorted",
		"inspect_first_attempts": "finished(job) job(id) attempt(job) sorted",
	},
	Free: map[string]string{
		"audit*":               "the audit reads everything, on request",
		"overdue*":             "the audit reads everything, on request",
		"inspect_counts":       "it counts everything",
		"inspect_ahead":        "it may read what waits in one queue: only people ask, and it stops at a thousand",
		"inspect_feed":         "it finds pages by their number, and joins the one row of where the feed stands",
		"inspect_empty_chain":  "it reads the one row of where the chain stands",
		"inspect_purge_counts": "it lists all counts: there is one for each rule, kind, state and code",
		"group_take_attended":  "it walks the index of groups that are to be looked at, in which there are few",
		"migration_*":          "they are asked when a store is opened, of a table with a row for each version",
	},
}

// bare reports whether a statement runs without the settings of steer: alone, or in a transaction that is the caller's.
func bare(name string) bool {
	return strings.HasPrefix(name, "inspect_") || slices.Contains(strings.Fields(`steer interpret now wake wake_missed durability lane_make lane_find
		present leave depend edit_lane enqueue enqueue_plain enqueue_landed job_there idempotency_take idempotency_find idempotency_bind unique_take unique_find
		group_listen group_add group_share group_hold group_attend group_seal after_stranger after_add feed_new size`), name)
}

// unsteered are the settings of a statement that runs without those of steer. The plan that is looked at serves all parameters.
func unsteered(name string, texts map[string]string) string {
	generic := "SET LOCAL plan_cache_mode = force_generic_plan"
	if strings.HasPrefix(name, "inspect_") {
		return generic + "; " + texts["interpret"]
	}
	return generic
}

// A plan is cached when tables are empty and used when they are full, or made when nobody has counted the rows yet: neither
// may send a statement through a whole table.
func TestEveryStatementFindsItsRowsByKeyInAMillion(t *testing.T) {
	w := newWorld(t)
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	w.ok(w.store.Close())
	texts, empty := sqltext.Load("postgres"), true
	explain := func(name, text string) storetest.Plan {
		switch {
		case !bare(name):
			return w.plan(name, text, texts["steer"])
		case empty:
			return storetest.Plan{} // whoever runs it plans it, and knows how large the tables are
		}
		return w.plan(name, text, unsteered(name, texts))
	}
	check := func(t *testing.T) { plans.Check(t, texts, explain) }
	w.part("planned while the tables were empty", check)
	w.flood()
	empty = false
	w.part("planned before anybody counted the rows", check)
	w.exec("ANALYZE")
	w.part("planned after", check)
	w.exec("VACUUM ANALYZE") // reading a whole index looks cheap only now
	w.part("planned after a vacuum", check)
	w.part("and the verbs touch little", w.tryErrands)
}

// part is a test within a test, in the same world.
func (w *world) part(name string, test func(*testing.T)) {
	whole := w.TB.(*testing.T)
	defer func() { w.TB = whole }()
	whole.Run(name, func(t *testing.T) {
		w.TB = t
		test(t)
	})
}

var parameter = regexp.MustCompile(`\$[0-9]+`)

// plan explains the plan that serves all parameters, under the store's own settings or under none.
func (w *world) plan(name, text, steer string) storetest.Plan {
	w.Helper()
	if name == "inspect_jobs" {
		text = "WITH page AS (SELECT id FROM holdfast_job WHERE id = $1) " + text
	}
	seen := parameter.FindAllString(text, -1)
	slices.Sort(seen)
	args := strings.TrimSuffix(strings.Repeat("NULL, ", len(slices.Compact(seen))), ", ")
	root, shown := w.explain(steer, text, args, "VERBOSE, COSTS OFF")
	p := storetest.Plan{Text: shown}
	p.Sorted = root.walk(nil, func(n, parent *node) {
		if strings.HasSuffix(n.Type, "Scan") && n.Relation != "" {
			p.Accesses = append(p.Accesses, n.access(parent, shown))
		}
	})
	return p
}

// explain shows a plan of a statement, in a transaction that leaves nothing behind.
func (w *world) explain(steer, text, args, options string) (root *node, shown string) {
	w.Helper()
	tx, err := w.conn.Begin(w.ctx)
	w.ok(err)
	defer tx.Rollback(w.ctx)
	run := func(text string) {
		_, err := tx.Exec(w.ctx, text, pgx.QueryExecModeSimpleProtocol)
		w.ok(err)
	}
	if args != "" {
		args = "(" + args + ")"
	}
	run(steer)
	run("PREPARE explained AS " + text)
	defer w.exec("DEALLOCATE explained")
	var all []struct{ Plan node }
	w.ok(tx.QueryRow(w.ctx, fmt.Sprintf("EXPLAIN (%s, FORMAT JSON) EXECUTE explained %s", options, args), pgx.QueryExecModeSimpleProtocol).Scan(&shown))
	w.ok(json.Unmarshal([]byte(shown), &all))
	return &all[0].Plan, shown
}

// A node is one step of a plan.
type node struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Alias    string `json:"Alias"`
	Index    string `json:"Index Cond"`
	Recheck  string `json:"Recheck Cond"`
	Tid      string `json:"TID Cond"`
	Filter   string `json:"Filter"`
	Subplan  string `json:"Subplan Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Removed  int    `json:"Rows Removed by Filter"`
	Plans    []node `json:"Plans"`
}

// walk visits every step, and reports whether one of them orders or keeps rows that no limit bounds.
func (n *node) walk(parent *node, visit func(n, parent *node)) (sorted bool) {
	visit(n, parent)
	switch n.Type {
	case "Sort", "Incremental Sort", "Materialize", "Memoize", "Hash":
		sorted = n.endless()
	}
	for i := range n.Plans {
		sorted = n.Plans[i].walk(n, visit) || sorted
	}
	return sorted
}

// endless reports whether a step may answer with as many rows as a table has that grows: it looks for no job in particular,
// and has no limit.
func (n *node) endless() bool {
	switch {
	case n.Type == "Limit":
		return false
	case n.Relation != "" && strings.HasSuffix(n.Type, "Scan"):
		one := regexp.MustCompile(`\b` + regexp.QuoteMeta(n.Alias) + `\.(id|job|key|ctid) = `)
		few := slices.Contains(strings.Fields("lane kind hold worker lease cancel"), strings.TrimPrefix(n.Relation, "holdfast_"))
		return !few && !one.MatchString(n.Index+n.Recheck+n.Tid)
	}
	return slices.ContainsFunc(n.Plans, func(under node) bool { return under.endless() })
}

func (n *node) access(parent *node, shown string) storetest.Access {
	a := storetest.Access{Table: strings.TrimPrefix(n.Relation, "holdfast_")}
	column := regexp.MustCompile(`\b` + regexp.QuoteMeta(n.Alias) + `\.(\w+)`)
	for _, found := range column.FindAllStringSubmatch(n.Index+n.Recheck+n.Tid, -1) {
		if !slices.Contains(a.Keys, found[1]) {
			a.Keys = append(a.Keys, found[1])
		}
	}
	once := strings.HasPrefix(n.Subplan, "InitPlan") || parent != nil && parent.Type == "Limit"
	a.First = len(a.Keys) == 0 && n.Filter == "" && once && (n.Subplan == "" || !strings.Contains(shown, "hashed "+n.Subplan))
	return a
}
