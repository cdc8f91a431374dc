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

// plans says how statements reach their rows. A new statement gets a line here. A page is found by the number of its first event, whose column is
// called first; it is written twice here, so that it is not mistaken for the first row.
var plans = storetest.Plans{
	Want: map[string]string{
		"configure_planner": "", "configure_planner_inspect": "", "configure_planner_whole": "", "now": "", "notify": "", "read_durability": "",
		"check_missed_wakes": "ready(first) cancel(first)",

		"lane_make": "", "lane_find": "", "lane_read": "", "upsert_worker": "", "delete_worker": "", "declare_kinds": "",
		"hold_lock": "", "set_idle_timeout": "", "hold_read": "", "kind_read": "", "hold_place": "", "hold_lift": "", "hold_fill": "",
		"read_weights":  "record(namespace)",
		"insert_record": "", "update_record": "record(namespace,name)", "delete_record": "record(namespace,name)", "find_record": "record(namespace,name)",

		"enqueue": "", "enqueue_plain": "", "idempotency_take": "", "unique_take": "",
		"count_committed":  "job(id)",
		"find_jobs":        "job(id)",
		"idempotency_find": "idempotency(owner,key)",
		"idempotency_bind": "idempotency(owner,key)",
		"unique_find":      "unique(owner,kind,key)",
		"replace_lock":     "",
		"order_lock":       "", "order_add": "", "order_return": "order(job)", "order_leave": "order(job)", "order_hold": "order(job)",
		"order_advance":    "order(job) order(owner,key) order(owner,key,seq) job(id) finished(job) later(job) later(ctid)",
		"order_find_stuck": "order(owner) job(id) later(job) finished(job)",
		"inspect_line":     "order(job) order(owner,key,seq)",
		"purge_order":      "order(job)",
		"lock_replaceable": "later(job) job(id) ready(lane,priority,job)",
		"read_replaceable": "job(id) later(job) ready(lane,priority,job)",
		"find_claimed":     "finished(job) later(job) job(id) ready(lane,priority,job) batch(all)",
		"replace_job":      "job(id)",
		"expiry_drop":      "job(id) expiry(expire_at,job)",
		"unique_pass":      "finished(job) unique(job)",
		"unique_lose":      "job(id)",

		"claim_lane of kinds":  "ready(lane) ready(ctid) job(id) progress(first) progress(job)",
		"claim_lane of lines":  "ready(lane) ready(ctid) job(id) progress(first) progress(job)",
		"claim_lane of queues": "ready(lane) ready(ctid) job(id) progress(first) progress(job)",
		"claim of kinds":       "ready(lane) ready(ctid) job(id) progress(first) progress(job)",
		"claim of lines":       "ready(lane) ready(ctid) job(id) progress(first) progress(job)",
		"claim of queues":      "ready(lane) ready(ctid) job(id) progress(first) progress(job)",
		"take":                 "ready(lane,priority) ready(ctid) job(id) progress(first) progress(job)",
		"take_turns":           "ready(lane) ready(ctid) job(id) progress(first) progress(job)",
		"take_runs":            "ready(lane,priority,job) ready(ctid) job(id) progress(first) progress(job)",
		"take_keys":            "ready(lane,priority,job) ready(ctid) job(id) progress(first) progress(job)",
		"peek":                 "ready(lane,priority) job(id)",
		"find_lines":           "ready(first) ready(lane)",
		"count_live":           "batch(all) job(id)",
		"set_aside":            "ready(lane,priority,job) ready(ctid) job(id)",
		"read_facts":           "job(id) progress(job)",

		"batch_make":    "",
		"batch_lock":    "batch(id)",
		"batch_shrink":  "batch(id)",
		"batch_drop":    "batch(id)",
		"batch_renew":   "batch(id)",
		"batch_started": "batch(id)",
		"batch_expired": "batch(all)",

		"finish": "", "attempt_add": "", "later_add": "", "late_add": "", "save_note": "",
		"finish gently": "", "attempt_add gently": "", "later_add gently": "", "ready_add gently": "job(id)",
		"cancel_find":             "cancel(job)",
		"cancel_drop":             "cancel(job)",
		"find_cancels_in_batches": "cancel(first) batch(id) cancel(job)",
		"find_unique_in_batches":  "unique(first) batch(id) unique(job) job(id) order(first) order(job)",
		"unique_free":             "unique(job)",
		"ready_add":               "job(id)",
		"find_settled":            "job(id) attempt(job,token) finished(job)",
		"merge_releases":          "attempt(job,token)",
		"complete_lock":           "batch(id)",
		"complete":                "batch(id) cancel(job) unique(job) job(id) order(job)",

		"promote":               "later(due_at) later(ctid) job(id) later(first) later(hold)",
		"find_missed_deadlines": "deadline(at) deadline(ctid) job(id) ready(lane,priority,job) later(job)",
		"expiry_sweep":          "expiry(expire_at) finished(job)",
		"expire":                "expiry(expire_at) job(id) ready(lane,priority,job) ready(ctid) later(job) later(ctid)",

		"redrive_lock":         "finished(job)",
		"redrive_facts":        "job(id) redriven(redrive,job) order(job)",
		"delete_finished_jobs": "finished(job)",
		"redrive_change":       "job(id)",
		"edit_lane":            "job(id)",
		"read_edit_state":      "job(id) later(job)",
		"edit_job":             "job(id)",
		"edit_time":            "job(id)",
		"edit_later":           "",
		"redrive_discard":      "finished(job)",
		"redrive_begin":        "", "record_redrive": "",
		"update_redriven": "redriven(redrive) finished(job)",
		"count_redriven":  "redriven(redrive) sorted",

		"deadline_add": "", "add_failures": "", "add_error_counts": "job(id)", "add_trend_counts": "",
		"change_error_status": "error_group(fingerprint)", "check_error_status": "error_group(fingerprint)", "read_error_groups": "error_group(fingerprint)",
		"triage": "error_group(fingerprint)",

		"begin_generation": "", "event_add": "", "cancel_add": "", "subject_event_add": "",
		"job_event_add":     "job(id) ready(lane,priority,job) later(job) batch(all) finished(job)",
		"read_job":          "order(job) job(id)",
		"lock_finished":     "finished(job)",
		"lock_ready":        "job(id) ready(lane,priority,job)",
		"lock_later":        "later(job)",
		"lock_batch_of_job": "batch(all)",
		"delete_finished":   "finished(job)",
		"delete_ready":      "job(id) ready(lane,priority,job)",
		"delete_later":      "later(job)",
		"discard":           "finished(job)",
		"count_ahead":       "ready(lane,priority,job)",

		"return_to_waiting": "job(id)",
		"group_add":         "", "after_add": "", "step_add": "", "events_add": "", "after_cancel_note": "",
		"add_group_listener": "",
		"share_lock_groups":  "group(id)", "lock_groups": "group(id)", "flag_groups": "group(id)", "raise_group_cursor": "group(id) sorted", "find_group_of_job": "job(id)", "group_seal": "group(id)", "lock_group": "group(id)",
		"group_owner": "group(id)", "group_end": "group(id)", "group_reopen": "group(id)", "save_group_check": "group(id)", "group_settle": "group(id)",
		"flag_parent_group": "group(id)", "lock_touched_groups": "group(id)", "count_touched_groups": "group(id)",
		"find_steps":           "step(group_id,name)",
		"find_non_member":      "job(id)",
		"lock_group_ancestors": "group(id) job(id)",
		"find_failed_members":  "group(id) group(parent) job(group_id) finished(job) after(job) sorted",

		"advance_lock": "", "set_advanced": "feed(one)",
		"check_work_to_advance":    "group(first) order(first)",
		"advance_pages":            "feed(one) outbox(first,first)",
		"find_ended_members":       "feed(one) outbox(first,first) job(id)",
		"group_expire":             "group(expire_at) group(id)",
		"find_flagged_groups":      "group(first)",
		"after_due":                "after(upstream) later(job) job(group_id) after(job) finished(job) job(id) sorted",
		"after_lock":               "later(job)",
		"after_start":              "later(job) job(id) later(ctid)",
		"after_cancel":             "later(job)",
		"find_uncancelled_members": "job(group_id,id) finished(job) cancel(job)",
		"group_cancel_queued":      "job(id) ready(lane,priority,job) later(job) ready(ctid) later(ctid) unique(job)",
		"group_cancel_leased":      "batch(all)",
		"end_child_groups":         "group(parent) group(id) sorted",
		"check_group_end":          "job(group_id,id) finished(job) cancel(job) group(parent)",
		"find_live_members":        "job(group_id,id) finished(job) group(parent)",
		"group_count":              "job(group_id) finished(job) tombstone(group_id) group(parent)",

		"feed_lock": "feed(one)", "advance_chain": "feed(one)", "find_unsealed_events": "event(first)", "seal_events": "event(id)",
		"check_feed":     "outbox(first) event(first)",
		"number_pages":   "outbox(first) feed(one) outbox(id)",
		"find_old_pages": "outbox(first,first)", "delete_pages": "outbox(first,first) feed(one)",
		"find_old_events": "event(link)", "delete_events": "event(link) feed(one)", "find_last_mark": "event(subject)",
		"delete_error_counts": "error_count(step) error_count(ctid)",
		"delete_trend_counts": "trend(step) trend(ctid)",
		"delete_tombstones":   "tombstone(purged_at) tombstone(ctid)",
		"listen_add":          "", "listen_drop": "listen(listener)",

		"find_ended_jobs":   "finished(job) job(id) group(id) artifact(job)",
		"purge_lock":        "finished(job) artifact(job)",
		"insert_tombstones": "finished(job) job(id) group(id) step(job)",
		"purge_count":       "finished(job) job(id)",
		"purge_redriven":    "finished(job) redriven(job)",
		"purge_keys":        "idempotency(job)", "purge_expiry": "job(id) expiry(expire_at,job)", "purge_attempt": "attempt(job)", "purge_late": "late_settlement(job)",
		"purge_carry": "progress(job)", "purge_deadline": "deadline(job)", "purge_artifact": "artifact(job)", "purge_upstreams": "after(job)",
		"purge_steps": "step(job)", "purge_waiters": "after(upstream)", "purge_job": "finished(job) job(id)",
		"artifact_keep": "job(id)", "read_database_size": "",

		"inspect_holds": "", "inspect_workers": "",
		"inspect_held_lines":        "order(job) order(owner,key,seq) finished(job) job(id)",
		"inspect_segments":          "ready(lane) ready(lane,priority) job(id)",
		"inspect_segments_of_lines": "ready(lane)",
		"inspect_line_counts":       "ready(lane)",
		"inspect_queues":            "",
		"inspect_depths":            "later(due_at) job(id) leased(all) batch(all) finished(job) sorted",
		"inspect_failed_codes":      "finished(code)",
		"inspect_error_trends":      "error_count(fingerprint,step) sorted",
		"inspect_error_hours":       "error_count(fingerprint,step) sorted",
		"inspect_error_outcomes":    "error_group(fingerprint) finished(fingerprint) attempt(fingerprint) finished(job) sorted",

		"inspect_upstreams":        "after(job)",
		"inspect_members":          "job(group_id) job(id) step(job) later(job) batch(all) finished(job)",
		"inspect_member_waits":     "job(group_id) after(job)",
		"inspect_artifacts":        "artifact(job)",
		"inspect_due_artifacts":    "artifact(expire_at)",
		"inspect_chain":            "event(link) event(subject) feed(first)",
		"inspect_group_names":      "group(id)",
		"inspect_story_lines":      "event(id)",
		"inspect_group_members":    "job(group_id) finished(job) later(job) batch(all) tombstone(group_id) group(parent) sorted",
		"inspect_event_details":    "job(id) attempt(job,token) finished(job) tombstone(job)",
		"inspect_tombstone":        "tombstone(job)",
		"inspect_jobs":             "job(id) ready(lane,priority,job) later(job) batch(all) finished(job) cancel(job) step(job) progress(job) order(job) attempt(job)",
		"inspect_upstream_results": "after(job,upstream) job(id) step(job) finished(job)",
		"inspect_purged_step":      "job(id) tombstone(group_id)",
		"inspect_lease":            "batch(id)",
		"inspect_attempts":         "attempt(job)",
		"inspect_late_results":     "late_settlement(job)",
		"inspect_job_events":       "event(job)",
		"inspect_subject_events":   "event(subject)",
		"inspect_records":          "record(namespace)",
		"inspect_trends":           "trend(step) sorted",
		"inspect_kinds":            "",
		"inspect_newest_job":       "job(first)",

		"inspect_retry_stats":    "attempt(job) job(id) finished(job) sorted",
		"inspect_first_attempts": "finished(job) job(id) attempt(job) sorted",
	},
	Free: map[string]string{
		"audit*":               "the integrity check reads everything, on request",
		"overdue*":             "the integrity check reads everything, on request",
		"inspect_counts":       "it counts everything",
		"inspect_ahead":        "it may read the jobs of one queue: only people ask, and it stops at a thousand",
		"inspect_feed":         "it finds pages by their number, and joins the single row with the feed's position",
		"inspect_empty_chain":  "it reads the single row with the chain's position",
		"inspect_purge_counts": "it lists all counts: there is one for each rule, kind, state and code",
		"lock_flagged_groups":  "it reads the index of flagged groups, of which there are few",
		"migration_*":          "they run when a store is opened, on a table with a row for each version",
	},
}

// runsUnconfigured reports whether a statement runs without the settings of configure_planner: alone, or in a transaction of the caller.
func runsUnconfigured(name string) bool {
	return strings.HasPrefix(name, "inspect_") || slices.Contains(strings.Fields(`configure_planner configure_planner_inspect now notify check_missed_wakes read_durability lane_make lane_find
		upsert_worker delete_worker declare_kinds edit_lane enqueue enqueue_plain count_committed find_jobs idempotency_take idempotency_find idempotency_bind unique_take unique_find
		add_group_listener group_add share_lock_groups lock_groups flag_groups group_seal find_non_member find_steps step_add raise_group_cursor find_group_of_job after_add check_feed read_database_size`), name)
}

// settingsOf returns the settings of a statement that runs without those of configure_planner. The generic plan is checked.
func settingsOf(name string, texts map[string]string) string {
	generic := "SET LOCAL plan_cache_mode = force_generic_plan"
	if strings.HasPrefix(name, "inspect_") {
		return generic + "; " + texts["configure_planner_inspect"]
	}
	return generic
}

// A plan is cached when tables are empty and used when they are full, or made before the tables were analyzed: in neither case may a statement read a
// whole table.
func TestEveryStatementFindsItsRowsByKeyInALargeStore(t *testing.T) {
	w := newWorld(t)
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	w.ok(w.store.Close())
	texts, empty := sqltext.Load("postgres"), true
	explain := func(name, text string) storetest.Plan {
		switch {
		case !runsUnconfigured(name):
			return w.plan(name, text, texts["configure_planner"])
		case empty:
			return storetest.Plan{} // it is planned when it runs, with the table sizes of that time
		}
		return w.plan(name, text, settingsOf(name, texts))
	}
	check := func(t *testing.T) { plans.Check(t, texts, explain) }
	w.subtest("planned while the tables were empty", check)
	w.fillTables()
	empty = false
	w.subtest("planned before the tables were analyzed", check)
	w.exec("ANALYZE")
	w.subtest("planned after", check)
	w.exec("VACUUM ANALYZE") // reading a whole index looks cheap only now
	w.subtest("planned after a vacuum", check)
	w.subtest("page budgets", w.checkPageBudgets)
}

// subtest runs a subtest in the same world.
func (w *world) subtest(name string, test func(*testing.T)) {
	whole := w.TB.(*testing.T)
	defer func() { w.TB = whole }()
	whole.Run(name, func(t *testing.T) {
		w.TB = t
		test(t)
	})
}

var parameter = regexp.MustCompile(`\$[0-9]+`)

// plan explains the generic plan of a statement, under the given settings.
func (w *world) plan(name, text, settings string) storetest.Plan {
	w.Helper()
	if name == "inspect_jobs" {
		text = "WITH page AS (SELECT id FROM holdfast_job WHERE id = $1) " + text
	}
	seen := parameter.FindAllString(text, -1)
	slices.Sort(seen)
	args := strings.TrimSuffix(strings.Repeat("NULL, ", len(slices.Compact(seen))), ", ")
	root, shown := w.explain(settings, text, args, "VERBOSE, COSTS OFF")
	p := storetest.Plan{Text: shown}
	p.Sorted = root.walk(nil, func(n, parent *node) {
		if strings.HasSuffix(n.Type, "Scan") && n.Relation != "" {
			p.Accesses = append(p.Accesses, n.access(parent, shown))
		}
	})
	return p
}

// explain shows the plan of a statement, in a transaction that is rolled back.
func (w *world) explain(settings, text, args, options string) (root *node, shown string) {
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
	run(settings)
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

	// Per loop.
	Loops     float64 `json:"Actual Loops"`
	Rows      float64 `json:"Actual Rows"`
	Unmatched float64 `json:"Rows Removed by Join Filter"`
}

// walk visits every step, and reports whether one of them sorts or stores an unbounded number of rows.
func (n *node) walk(parent *node, visit func(n, parent *node)) (sorted bool) {
	visit(n, parent)
	switch n.Type {
	case "Sort", "Incremental Sort", "Materialize", "Memoize", "Hash":
		sorted = n.unbounded()
	}
	for i := range n.Plans {
		sorted = n.Plans[i].walk(n, visit) || sorted
	}
	return sorted
}

// unbounded reports whether a step may return as many rows as a growing table has: it has no limit, and selects no single job.
func (n *node) unbounded() bool {
	switch {
	case n.Type == "Limit":
		return false
	case n.Relation != "" && strings.HasSuffix(n.Type, "Scan"):
		one := regexp.MustCompile(`\b` + regexp.QuoteMeta(n.Alias) + `\.(id|job|key|ctid) = `)
		few := slices.Contains(strings.Fields("lane kind hold worker batch cancel"), strings.TrimPrefix(n.Relation, "holdfast_"))
		return !few && !one.MatchString(n.Index+n.Recheck+n.Tid)
	}
	return slices.ContainsFunc(n.Plans, func(under node) bool { return under.unbounded() })
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
