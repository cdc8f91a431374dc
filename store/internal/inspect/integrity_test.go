package inspect

import (
	"slices"
	"strings"
	"testing"
)

// damages are scripts that break the rule under which they are listed, and possibly others.
var damages = map[string][]string{
	"a job has a state row":                                            {"DELETE FROM holdfast_ready WHERE job = J1", "DELETE FROM holdfast_finished WHERE job = J4"},
	"a job has only one state row":                                     {"INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation) VALUES (NOON, J1, 0, 0, 0, 0, 1)", "INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at) VALUES (2, 0, J4, 1, 0, 0, 0, 1, NULL)"},
	"a state row belongs to a job that exists":                         {"DELETE FROM holdfast_job WHERE id = J3", "DELETE FROM holdfast_job WHERE id = J5"},
	"counters never go below their start":                              {"UPDATE holdfast_ready SET failures = -1", "UPDATE holdfast_later SET generation = 0", "UPDATE holdfast_finished SET token = -1 WHERE job = J6"},
	"a job waits in the lane of its queue, kind, owner and dependency": {"UPDATE holdfast_job SET lane = 2 WHERE id = J5", "DELETE FROM holdfast_lane WHERE id = 2", "UPDATE holdfast_job SET owner = 'eve' WHERE id = J5", "UPDATE holdfast_job SET owner = NULL WHERE id = J5", "UPDATE holdfast_lane SET dependency = 'printer' WHERE id = 4", "UPDATE holdfast_job SET dependency = NULL WHERE id = J4"},
	"a ready job has the lane and priority of its facts":               {"UPDATE holdfast_ready SET lane = 2", "UPDATE holdfast_ready SET lane = -2", "UPDATE holdfast_ready SET priority = 3"},
	"first attempts wait in one line, retries in the other":            {"UPDATE holdfast_ready SET lane = -3 WHERE job = J1", retried + "UPDATE holdfast_ready SET lane = 4 WHERE job = J2"},
	"a job has a kind and a queue":                                     {"UPDATE holdfast_job SET kind = '' WHERE id = J2"},
	"a job has an id":                                                  {"UPDATE holdfast_job SET id = zeroblob(16) WHERE id = J6", "UPDATE holdfast_job SET id = x'ff' WHERE id = J6"},
	"a batch has a job":                                                {"UPDATE holdfast_batch SET jobs = x'', members = '[]'"},
	"the members of a lease are aligned":                               {"UPDATE holdfast_batch SET members = '[[3,1,1,0,1,1],[3,1,1,0,1,1]]'", "UPDATE holdfast_batch SET jobs = x'00'", "UPDATE holdfast_batch SET members = '['"},
	"tokens only grow":                                                 {"UPDATE holdfast_later SET token = 0 WHERE job = J2", "UPDATE holdfast_batch SET members = '[[2,1,1,0,1,1]]'", "UPDATE holdfast_finished SET token = 1 WHERE job = J9", "UPDATE holdfast_finished SET token = 1 WHERE job = J5"},
	"generations only grow":                                            {"UPDATE holdfast_attempt SET generation = 2 WHERE job = J3"},
	"a manual retry or redrive began every generation after the first": {"DELETE FROM holdfast_event WHERE name = 'manual retry'", "UPDATE holdfast_ready SET generation = 2"},
	"a generation ends once":                                           {"UPDATE holdfast_attempt SET to_state = 'cancelled' WHERE job = J5 AND token = 1", "UPDATE holdfast_attempt SET to_state = 'failed' WHERE job = J3 AND token = 1"},
	"an ended job stays ended":                                         {"UPDATE holdfast_attempt SET to_state = 'failed' WHERE job = J2", "UPDATE holdfast_attempt SET to_state = 'failed' WHERE job = J3 AND token = 2", "UPDATE holdfast_finished SET generation = 1 WHERE job = J9"},
	"a benign failure is no dead letter":                               {"UPDATE holdfast_finished SET benign = 1 WHERE job = J5", "UPDATE holdfast_attempt SET benign = 1 WHERE job = J8 AND to_state = 'failed'"},
	"a failed job has the attempt that failed it":                      {"DELETE FROM holdfast_attempt WHERE job = J8", "UPDATE holdfast_finished SET code = 'OTHER' WHERE job = J5"},
	"counters of failures and crashes match the attempts":              {"UPDATE holdfast_later SET failures = 2 WHERE job = J2", "UPDATE holdfast_batch SET members = '[[3,1,0,0,1,1]]'", "UPDATE holdfast_ready SET failures = 1", "UPDATE holdfast_finished SET failures = 0 WHERE job = J5"},
	"charged attempts are numbered without gaps":                       {"UPDATE holdfast_attempt SET count = 1 WHERE job = J5 AND token = 2"},
	"no attempt beyond its limit":                                      {"UPDATE holdfast_attempt SET cap = 1 WHERE job = J5"},
	"no attempt starts before the retry is due":                        {"UPDATE holdfast_attempt SET started_at = NOON - 750000 WHERE job = J5 AND token = 2", "UPDATE holdfast_batch SET claimed_at = NOON - 500001", "UPDATE holdfast_attempt SET to_state = 'queued', due_at = NOON, generation = 2 WHERE job = J9"},
	"no scheduled job starts before its time":                          {"UPDATE holdfast_job SET run_at = NOON WHERE id = J4", "UPDATE holdfast_job SET run_at = NOON WHERE id = J2", "UPDATE holdfast_batch SET members = '[[1,1,1,0,1,1]]'; UPDATE holdfast_job SET run_at = NOON WHERE id = J3; DELETE FROM holdfast_attempt WHERE job = J3"},
	"a ready job is due":                                               {"UPDATE holdfast_ready SET due_at = NOON + 1"},
	"an expired lease is reclaimed soon":                               {"UPDATE holdfast_batch SET expires_at = NOON - 120000001"},
	"a due job is promoted soon":                                       {"UPDATE holdfast_later SET due_at = NOON - 120000001 WHERE job = J2"},
	"a finished job has a known state":                                 {"UPDATE holdfast_finished SET state = 'exploded' WHERE job = J4"},
	"an attempt ends in a known state":                                 {"UPDATE holdfast_attempt SET to_state = 'complete' WHERE job = J2"},
	"a result belongs to a complete job, a code to a failed one":       {"UPDATE holdfast_finished SET result = '1' WHERE job = J5", "UPDATE holdfast_finished SET code = 'X' WHERE job = J4", "UPDATE holdfast_finished SET discarded_at = 1 WHERE job = J6"},
	"a unique key is held by a job that may hold it":                   {"DELETE FROM holdfast_job WHERE id = J1", "UPDATE holdfast_unique SET job = J5 WHERE job = J1", "UPDATE holdfast_unique SET key = 'two' WHERE job = J1", "UPDATE holdfast_job SET unique_done = 0 WHERE id = J4"},
	"a job with a unique key holds it":                                 {"DELETE FROM holdfast_unique WHERE job = J1", "DELETE FROM holdfast_unique WHERE job = J4"},
	"an idempotency key leads to a job that exists":                    {"DELETE FROM holdfast_job WHERE id = J1"},
	"only a processing job has a cancel request":                       {"INSERT INTO holdfast_cancel (job, at, actor, reason) VALUES (J1, NOON, 'ann', NULL)", "INSERT INTO holdfast_cancel (job, at, actor, reason) VALUES (J4, NOON, 'ann', NULL)"},
	"attempts, events and other rows belong to a job that exists":      {"DELETE FROM holdfast_job WHERE id = J2", "DELETE FROM holdfast_job WHERE id = J7", "DELETE FROM holdfast_job WHERE id = J6", "UPDATE holdfast_deadline SET job = R1"},
	"stored JSON is valid":                                             {"UPDATE holdfast_job SET args = '{' WHERE id = J4", "UPDATE holdfast_job SET tags = 'red' WHERE id = J1", "UPDATE holdfast_finished SET result = 'oops' WHERE job = J4", "UPDATE holdfast_record SET body = '{'"},
	"a job set aside has the tag that is held":                         {setAside + "UPDATE holdfast_later SET hold = 'green' WHERE job = J1", setAside + "UPDATE holdfast_job SET tags = NULL WHERE id = J1", setAside + "UPDATE holdfast_job SET tags = '{' WHERE id = J1"},
	"a job set aside is promoted soon after its hold has ended":        {setAside + "UPDATE holdfast_hold SET until = NOON - 120000001 WHERE scope = 'tag'"},
	"a limit is not exceeded":                                          {"INSERT INTO holdfast_batch (id, worker, claimed_at, expires_at, jobs, members) VALUES (x'0aaa000000007000800000000000000b', 'w1', NOON, NOON + 9500000, J1, '[[1,0,0,0,1,1]]'); DELETE FROM holdfast_ready"},
	"an error group counts all its failures":                           {"UPDATE holdfast_error_group SET failures = 8 WHERE fingerprint = 'f2'", "DELETE FROM holdfast_error_group WHERE fingerprint = 'f8'"},
	"a redriven job has reached its generation":                        {"UPDATE holdfast_redriven SET generation = 3", "DELETE FROM holdfast_finished WHERE job = J9"},
	"only the first job of a line starts":                              {"INSERT INTO holdfast_order (job, owner, key, seq, hold, live) VALUES (J1, '', 'k', 1, 0, 1), (J2, '', 'k', 2, 0, 1)"},
	"a line continues when its first job has ended":                    {"INSERT INTO holdfast_order (job, owner, key, seq, hold, live) VALUES (J4, '', 'k', 1, 1, 1)", "INSERT INTO holdfast_order (job, owner, key, seq, hold, live) VALUES (J5, '', 'k', 1, 0, 1)", "INSERT INTO holdfast_order (job, owner, key, seq, hold, live) VALUES (J1, '', 'k', 1, 0, 1); UPDATE holdfast_later SET hold = '' WHERE job = J7; INSERT INTO holdfast_order (job, owner, key, seq, hold, live) VALUES (J7, '', 'l', 1, 0, 1)"},
	"a record has a version":                                           {"UPDATE holdfast_record SET version = 0"},
	"arguments are within their limit":                                 {"UPDATE holdfast_job SET args = '\"' || hex(zeroblob(600000)) || '\"' WHERE id = J4"},
}

// proven elsewhere: a damaged file cannot be planted by a statement.
var proven = []string{"the database file is not damaged"}

func TestAHealthyStoreHasNoFindings(t *testing.T) {
	s := openTables(t)
	s.plant(script(healthy))
	findings, err := New(s, SQLite).CheckIntegrity(t.Context())
	if err != nil || len(findings) != 0 {
		t.Fatalf("findings %v, error %v", findings, err)
	}
}

func TestWhatHoldsDoToAHealthyStoreIsNoFinding(t *testing.T) {
	second := "DELETE FROM holdfast_ready; INSERT INTO holdfast_batch (id, worker, lost, claimed_at, expires_at, jobs, members) VALUES (x'0aaa000000007000800000000000000b', 'w1', NULL, NOON, NOON + 9500000, J1, '[[1,0,0,0,1,1]]');"
	for _, planted := range []string{
		setAside, retried,
		setAside + "UPDATE holdfast_hold SET until = NOON - 120000001 WHERE scope = 'tag'; INSERT INTO holdfast_hold (scope, name, source, since, actor) VALUES ('tag', 'blue', 'window', NOON, 'ann')",
		second + "UPDATE holdfast_hold SET since = NOON - 10000000 WHERE source = 'limit'",
		second + "UPDATE holdfast_hold SET until = NOON WHERE source = 'limit'",
		second + "UPDATE holdfast_hold SET retries = 1 WHERE source = 'limit'",
		second + "UPDATE holdfast_hold SET source = 'breaker' WHERE source = 'limit'",
		second + "UPDATE holdfast_batch SET lost = 'w9' WHERE claimed_at = NOON",
		second + "UPDATE holdfast_job SET expire_at = NOON WHERE id = J1",
	} {
		s := openTables(t)
		s.plant(script(healthy))
		s.plant(script(planted))
		if findings, err := New(s, SQLite).CheckIntegrity(t.Context()); err != nil || len(findings) != 0 {
			t.Errorf("after %q: findings %v, error %v", planted, findings, err)
		}
	}
}

func TestEveryBrokenRuleIsFound(t *testing.T) {
	for rule, all := range damages {
		for _, damage := range all {
			s := openTables(t)
			s.plant(script(healthy))
			s.plant(script(damage))
			findings, err := New(s, SQLite).CheckIntegrity(t.Context())
			if err != nil {
				t.Errorf("after %q the integrity check failed: %v", damage, err)
			}
			found := false
			for _, finding := range findings {
				found = found || finding.Rule == rule
				if finding.Job == "" || finding.Detail == "" {
					t.Errorf("after %q a finding names nothing: %+v", damage, finding)
				}
			}
			if !found {
				t.Errorf("after %q the rule %q was not found broken; found: %v", damage, rule, findings)
			}
			if _, _, err := New(s, SQLite).Jobs(t.Context(), all9); err != nil {
				t.Errorf("after %q the jobs could not be listed: %v", damage, err)
			}
		}
	}
}

func TestEveryRuleHasADamageThatBreaksIt(t *testing.T) {
	for name := range New(openTables(t), SQLite).statements {
		rule, is := strings.CutPrefix(name, "audit: ")
		if !is {
			rule, is = strings.CutPrefix(name, "overdue: ")
		}
		if is && damages[rule] == nil && groupDamages[rule] == nil && !slices.Contains(proven, rule) {
			t.Errorf("no damage proves that the rule %q is checked", rule)
		}
	}
}

func TestAnAttemptThatNeverStartedIsNotEarly(t *testing.T) {
	s := openTables(t)
	s.plant(script(healthy))
	// Job 2 expires while it waits for its retry; job 7 was claimed to be expired, and its worker stopped renewing.
	s.plant(script(`
DELETE FROM holdfast_later WHERE job IN (J2, J7);
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, code) VALUES (J2, 2, 1, 'w1', NOON - 100, NOON - 100, 'failed', 'JOB_EXPIRED');
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, finished_at, state, worker, code) VALUES (J2, 2, 1, 0, 0, 1, NOON - 100, 'failed', 'w1', 'JOB_EXPIRED');
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, due_at, why) VALUES (J7, 1, 1, 'w1', NOON - 100, NOON - 100, 'queued', 'release', NOON - 100, 'its worker went silent before it started');
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at) VALUES (2, 5, J7, 1, 0, 0, 1, 1, NOON - 100)`))
	findings, err := New(s, SQLite).CheckIntegrity(t.Context())
	if err != nil || len(findings) != 0 {
		t.Fatalf("findings %v, error %v", findings, err)
	}
}
