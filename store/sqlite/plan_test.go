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

// plans is the table of how statements find their rows. A new statement needs a line here.
var plans = storetest.Plans{
	Want: map[string]string{
		"begin": "", "begin_read": "", "commit": "", "rollback": "", "savepoint": "", "savepoint_rollback": "", "savepoint_release": "", "data_version": "",

		"lane_find": "", "lane_add": "", "lane_list": "", "kind_read": "", "upsert_worker": "", "delete_worker": "", "declare_kind": "",
		"hold_find": "", "hold_place": "", "hold_set_level": "", "hold_lift": "",

		"idempotency_add": "", "unique_add": "", "job_add": "", "ready_add": "", "later_add": "", "expiry_add": "",
		"idempotency_find": "idempotency(owner,key)",
		"idempotency_bind": "idempotency(owner,key)",
		"unique_find":      "unique(owner,kind,key)",
		"find_replaceable": "job(id) later(job) ready(lane,priority,job)",
		"replace_job":      "job(id)",
		"expiry_drop":      "expiry(expire_at,job)",
		"unique_pass":      "unique(owner,kind,key) finished(job)",
		"unique_lose":      "job(id)",
		"order_add":        "order(owner,key)",
		"order_find":       "order(job)",
		"order_leave":      "order(job)",
		"order_return":     "order(job) order(owner,key)",
		"order_hold":       "order(job)",
		"order_head":       "order(owner,key) job(id) later(job) finished(job)",
		"order_next_line":  "order(owner)",
		"find_waiting":     "later(job) job(id)",
		"inspect_line":     "order(job) order(owner,key,seq)",
		"purge_order":      "order(job)",
		"find_token":       "job(id) ready(lane,priority,job) later(job) batch(all)",

		"read_weights":      "record(namespace)",
		"find_lines":        "ready(lane)",
		"probe_lines":       "ready(lane)",
		"find_priorities":   "ready(lane)",
		"read_live_members": "batch(all)",
		"find_job_lanes":    "job(id)",
		"set_aside":         "ready(lane,priority,job) job(id)",

		"peek":               "ready(lane,priority,job) job(id)",
		"read_ready_rows":    "ready(lane)",
		"read_facts":         "job(id) progress(job)",
		"read_ready_jobs":    "ready(lane,priority,job) job(id) progress(job)",
		"read_ready_range":   "ready(lane,priority,job)",
		"delete_ready_range": "ready(lane,priority,job)",
		"job_facts":          "job(id) progress(job)",

		"batch_add":           "",
		"batch_find":          "batch(id)",
		"batch_update":        "batch(id)",
		"batch_drop":          "batch(id)",
		"find_batches_of_job": "batch(all)",
		"batch_expired":       "batch(all) sorted",
		"batch_renew":         "batch(id)",
		"cancel_list":         "cancel(all)",

		"finish_complete": "", "finish": "", "attempt_add": "", "return_to_later": "", "save_progress": "", "save_checkpoint": "",
		"check_settle_needs":    "cancel(first) unique(first) order(first)",
		"cancel_drop":           "cancel(job)",
		"find_settled":          "attempt(job,token) finished(job)",
		"take_released_attempt": "attempt(job,token)",
		"merge_releases":        "attempt(job,token)",
		"late_add":              "job(id)",
		"return_to_ready":       "job(id)",
		"return_to_waiting":     "job(id)",
		"unique_free":           "unique(owner,kind,key) job(id)",

		"deadline_add": "", "error_group_add": "", "add_error_counts": "", "add_trend_counts": "",
		"find_failed_jobs":    "job(id)",
		"find_error_group":    "error_group(fingerprint)",
		"add_failures":        "error_group(fingerprint)",
		"change_error_status": "error_group(fingerprint)",
		"triage":              "error_group(fingerprint)",

		"check_work":         "ready(first) cancel(first)",
		"find_promote_bound": "later(due_at) job(id)",
		"promote":            "later(due_at,job) job(id)",
		"delete_promoted":    "later(due_at,job) job(id)",

		"find_free_tag":             "later(hold)",
		"find_set_aside_bound":      "later(hold) job(id)",
		"promote_set_aside":         "later(hold,job) job(id)",
		"delete_promoted_set_aside": "later(hold,job) job(id)",
		"find_due_deadlines":        "deadline(at) job(id) ready(lane,priority,job) later(job)",
		"delete_deadlines":          "deadline(at,job)",

		"expiry_sweep": "expiry(expire_at) finished(job)",
		"find_expired": "expiry(expire_at) job(id) ready(lane,priority,job) later(job)",
		"delete_ready": "ready(lane,priority,job) job(id)",
		"delete_later": "later(job)",

		"set_generation_start": "", "job_event_add": "", "subject_event_add": "", "cancel_add": "", "insert_record": "", "record_redrive": "",
		"find_record":         "record(namespace,name)",
		"update_record":       "record(namespace,name)",
		"delete_record":       "record(namespace,name)",
		"hold_read":           "feed(rowid)",
		"read_token_floor":    "feed(rowid)",
		"raise_token_floor":   "feed(rowid)",
		"check_set_aside":     "later(job)",
		"edit_job":            "job(id)",
		"edit_time":           "job(id)",
		"count_edit":          "feed(rowid)",
		"read_args":           "job(id)",
		"update_args":         "job(id)",
		"update_queue":        "job(id)",
		"find_redriven":       "redriven(redrive,job)",
		"update_redriven":     "redriven(redrive,job)",
		"find_ended_redriven": "redriven(redrive) finished(job)",
		"count_redriven":      "redriven(redrive)",

		"read_job":        "job(id)",
		"find_job_place":  "ready(lane,priority,job) later(job) finished(job)",
		"delete_finished": "finished(job)",
		"discard":         "finished(job)",
		"count_ahead":     "ready(lane,priority,job)",

		"listen_add": "", "add_page": "", "group_add": "", "after_add": "", "step_add": "", "after_cancel": "", "wait_for_members": "", "tombstone_add": "", "purge_count": "",
		"artifact_keep": "", "artifact_expire": "",
		"check_end_listener": "listen(event)", "check_queued_listener": "listen(event)",
		"advance_feed_head":    "feed(rowid)",
		"read_feed":            "feed(rowid)",
		"save_purged_number":   "feed(rowid)",
		"find_unsealed_events": "event(link)",
		"seal_event":           "event(rowid)",
		"advance_chain":        "feed(rowid)",
		"save_chain_anchor":    "feed(rowid)",

		"find_old_pages":      "outbox(rowid) feed(rowid)",
		"delete_pages":        "outbox(rowid)",
		"find_old_events":     "event(link) feed(rowid)",
		"find_last_mark":      "event(subject)",
		"delete_events":       "event(link)",
		"delete_error_counts": "error_count(fingerprint,step,kind,queue,dependency,version)",
		"delete_trend_counts": "trend(step)",
		"delete_tombstones":   "tombstone(job) tombstone(purged_at)",

		"find_group_state":         "group(id)",
		"group_seal":               "group(id)",
		"flag_group":               "group(id)",
		"raise_group_cursor":       "group(id)",
		"clear_group_flag":         "group(id)",
		"save_group_cursor":        "group(id)",
		"group_find":               "group(id)",
		"group_settle":             "group(id)",
		"group_end":                "group(id)",
		"reset_group_cursor":       "group(id)",
		"group_reopen":             "group(id)",
		"find_child_groups":        "group(parent)",
		"end_child_groups":         "group(parent)",
		"find_live_child_group":    "group(parent)",
		"find_last_live_member":    "job(group_id,id) finished(job)",
		"find_uncancelled_members": "job(group_id,id) finished(job) cancel(job)",
		"group_count":              "job(group_id) finished(job) tombstone(group_id) group(parent)",
		"find_failed_members":      "job(group_id) finished(job) after(job)",
		"find_step":                "step(group_id,name)",
		"find_upstream":            "job(id) finished(job)",
		"find_upstream_states":     "after(job) finished(job) tombstone(job)",
		"find_followers":           "after(upstream) later(job)",
		"find_waiting_members":     "job(group_id) later(job)",
		"clear_group_wait":         "later(job)",
		"advance_pages":            "outbox(rowid)",
		"find_ended_members":       "job(id)",
		"find_flagged_groups":      "group(id)",
		"find_expired_groups":      "group(expire_at)",
		"set_advanced":             "feed(rowid)",

		"find_purgeable":    "finished(job) job(id) group(id) artifact(job) step(job)",
		"recheck_purgeable": "finished(job) job(id) group(id) artifact(job)",
		"purge_redriven":    "redriven(job) finished(job)",
		"purge_idempotency": "idempotency(owner,key) job(id)",
		"purge_unique":      "unique(owner,kind,key) job(id)",
		"purge_expiry":      "expiry(expire_at,job) job(id)",
		"purge_attempts":    "attempt(job)",
		"purge_late":        "late_settlement(job)",
		"purge_carry":       "progress(job)",
		"purge_cancel":      "cancel(job)",
		"purge_upstreams":   "after(job)",
		"purge_steps":       "step(job)",
		"purge_waiters":     "after(upstream)",
		"purge_artifacts":   "artifact(job)",
		"purge_finished":    "finished(job)",
		"purge_jobs":        "job(id)",

		"inspect_holds": "", "inspect_workers": "", "inspect_kinds": "",
		"inspect_held_lines":     "order(job) order(owner,key,seq) finished(job) job(id)",
		"inspect_jobs":           "job(id) ready(lane,priority,job) later(job) leased(all) batch(all) finished(job) cancel(job) step(job) progress(job) order(job) attempt(job) sorted",
		"inspect_records":        "record(namespace)",
		"inspect_subject_events": "event(subject)",
		"inspect_attempts":       "attempt(job)",
		"inspect_late_results":   "late_settlement(job) sorted",
		"inspect_job_events":     "event(job)",
		"inspect_ahead":          "job(id) ready(lane,priority,job)",
		"inspect_trends":         "trend(step) sorted",

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
		"inspect_members":          "job(group_id) job(id) step(job) later(job) leased(all) batch(all) finished(job) sorted",
		"inspect_member_waits":     "job(group_id) after(job)",
		"inspect_upstream_results": "after(job,upstream) job(id) step(job) finished(job)",
		"inspect_purged_step":      "job(id) tombstone(group_id)",
		"inspect_lease":            "batch(id)",
		"inspect_artifacts":        "artifact(job)",
		"inspect_due_artifacts":    "artifact(expire_at)",
		"inspect_empty_chain":      "feed(rowid) event(link) event(subject)",
		"inspect_group_names":      "group(id)",
		"inspect_story_lines":      "event(rowid)",
		"inspect_event_details":    "job(id) attempt(job,token) finished(job) tombstone(job)",
		"inspect_tombstone":        "tombstone(job)",
	},
	Free: map[string]string{
		"audit*":                "the integrity check reads everything, on request",
		"overdue*":              "the integrity check reads everything, on request",
		"inspect_counts":        "it counts everything",
		"find_old_error_counts": "retention deletes a few at a time",
		"listen_list":           "listeners are few",

		"raise_ready_tokens":    "a restore updates all live jobs, before the store is used",
		"raise_later_tokens":    "a restore updates all live jobs, before the store is used",
		"raise_deadline_tokens": "a restore updates all live jobs, before the store is used",
		"listen_drop":           "listeners are few",

		"inspect_group_members": "it counts the members of one group, and reads all batches, which are few",
		"inspect_feed":          "the feed has one row, and its pages are found by their numbers",
		"inspect_chain":         "the feed has one row, and the lines are found by their links",
		"inspect_purge_counts":  "as few rows as there are rules, kinds, states and codes",
		"inspect_newest_job":    "it reads one row, from the end of the key",

		"inspect_retry_stats":    "it summarises everything within a duration, on request",
		"inspect_first_attempts": "it summarises everything within a duration, on request",
	},
}

// SQLite plans by its statistics: those of empty tables, none, or current ones.
func TestEveryStatementFindsItsRowsByKeyInALargeStore(t *testing.T) {
	path := written(t)
	f := &full{t, raw(t, path)}
	f.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -100000")
	f.run("DELETE FROM holdfast_job; DELETE FROM holdfast_ready; DELETE FROM holdfast_lane; ANALYZE")
	for _, text := range floods {
		f.run(text)
	}
	texts := sqltext.Load("sqlite")
	check := func(t *testing.T) { plans.Check(t, texts, f.plan) }
	t.Run("with statistics of empty tables", check)
	f.run("DROP TABLE sqlite_stat1; DROP TABLE sqlite_stat4")
	t.Run("without statistics", check)
	f.run("PRAGMA analysis_limit = 1000; ANALYZE")
	t.Run("with current statistics", check)
	// Statistics with few lanes lead to a skip-scan, which tries every lane that there is by then.
	f.run(`DROP TABLE sqlite_stat4; UPDATE sqlite_stat1 SET stat = '1000000 1000000 1000000 1' WHERE tbl = 'holdfast_ready'; ANALYZE sqlite_schema`)
	t.Run("with statistics of one lane", check)
	t.Run("and reads little", func(t *testing.T) { readLittle(t, path, texts) })
}

// full is a file with manyRows in every table that grows.
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
	skipped = regexp.MustCompile(`ANY\(\w+\)( AND )?`) // a skip-scan: every value of this column is tried, so it is not a key
	peeked  = regexp.MustCompile(`EXISTS \(SELECT 1 FROM holdfast_(\w+)\)`)
)

// plan returns how a statement would run.
func (f *full) plan(name, text string) (p storetest.Plan) {
	if name == "inspect_jobs" {
		text = "WITH page AS (SELECT id FROM holdfast_job WHERE id = $1) " + text
	}
	st, _, err := f.conn.PrepareTransient("EXPLAIN QUERY PLAN " + text)
	if err != nil {
		f.Fatalf("%s: %v", name, err)
	}
	defer st.Finalize()
	aliases := map[int]map[string]string{0: tablesOf(text)} // by the step in which they are known
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

// tablesOf returns the tables that a text names, by their aliases.
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

// access reads one step of a plan. The columns are in parentheses behind the index. A search by an automatic index
// reads the whole table first.
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
