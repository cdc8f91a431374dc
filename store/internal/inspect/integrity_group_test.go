package inspect

import (
	"slices"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"
)

// Two ends of job 21, for which 23 and 24 wait: complete, and failed.
const (
	ended21  = "DELETE FROM holdfast_batch; INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state) VALUES ({id 21}, 1, 0, 0, 0, 1, {at -500}, {at -1}, 'complete');"
	failed21 = "DELETE FROM holdfast_batch; INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, code) VALUES ({id 21}, 1, 1, 'w1', {at -500}, {at -1}, 'failed', 'failure', 1, 'BAD'); " +
		"INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, code) VALUES ({id 21}, 1, 1, 0, 0, 1, {at -500}, {at -1}, 'failed', 'BAD'); DELETE FROM holdfast_after WHERE job = {id 23} AND upstream = {id 21}; INSERT INTO holdfast_after (upstream, job, regardless) VALUES ({id 22}, {id 23}, TRUE);"
	stone16 = "INSERT INTO holdfast_tombstone (job, kind, queue, group_id, state, finished_at, purged_at, rule) VALUES ({id 16}, 'mail', 'default', {id 201}, 'complete', {at -895}, {at -50}, 'a week');"
	wipedTo = "UPDATE holdfast_feed SET anchor = 1, anchored = (SELECT hash FROM holdfast_event WHERE link = 1); DELETE FROM holdfast_event WHERE link = 1;"
	cutOff  = wipedTo + "INSERT INTO holdfast_event (id, subject, at, name, actor, reason, token, generation) {own} SELECT 99, 'audit', {at 0}, 'shortened', 'holdfast', '1 lines up to link 1 are forgotten, the newest of 2020-01-01T00:00:00Z; its hash is ' || {hex anchored}, 0, 0 FROM holdfast_feed;"
	keyMade = "INSERT INTO holdfast_record (namespace, name, version, body, kept_at) VALUES ('key', 'ada', 1, '{}', {at 0});"
)

// groupDamages are scripts that break, in the campaign, the rule under which they are listed.
var groupDamages = map[string][]string{
	"a member belongs to a group that exists":             {"DELETE FROM holdfast_group WHERE id = {id 204}"},
	"members wait for members of their own group":         {"UPDATE holdfast_job SET group_id = {id 203} WHERE id = {id 21}", "UPDATE holdfast_job SET group_id = NULL WHERE id = {id 23}", "UPDATE holdfast_job SET group_id = NULL WHERE id = {id 22}"},
	"a step names a member of its group":                  {"INSERT INTO holdfast_step (group_id, name, job) VALUES ({id 201}, 'load', {id 21})"},
	"a settled group has no live member":                  {"UPDATE holdfast_job SET group_id = {id 201} WHERE id = {id 22}", "UPDATE holdfast_group SET parent = {id 201} WHERE id = {id 203}", "DELETE FROM holdfast_finished WHERE job = {id 27}"},
	"a sealed group without live members is settled":      {"UPDATE holdfast_group SET state = 'processing', settled_at = NULL WHERE id = {id 204}", "UPDATE holdfast_group SET state = 'processing', sealed_at = {at 0} WHERE id = {id 203}"},
	"the cursor of a group has passed only ended members": {"UPDATE holdfast_group SET live = {id 24} WHERE id = {id 202}"},
	"the outcome of a group follows from its members": {
		"UPDATE holdfast_group SET state = 'ready' WHERE id = {id 201}", "UPDATE holdfast_group SET complete = 1, failed = 2 WHERE id = {id 201}", "UPDATE holdfast_group SET quorum = 2 WHERE id = {id 204}",
		"UPDATE holdfast_group SET failed = NULL WHERE id = {id 204}", stone16, "UPDATE holdfast_group SET state = 'cancelled', complete = 1, failed = 2 WHERE id = {id 201}",
		"UPDATE holdfast_group SET parent = {id 201} WHERE id = {id 204}",
	},
	"a member waits only for members that have not ended": {ended21, failed21, "UPDATE holdfast_job SET group_id = NULL WHERE id = {id 23}", "DELETE FROM holdfast_after WHERE job = {id 23}"},
	"the feed is numbered without gaps": {
		"DELETE FROM holdfast_outbox WHERE first = 6", "DELETE FROM holdfast_outbox WHERE first = 1", "DELETE FROM holdfast_outbox WHERE first = 17", "UPDATE holdfast_outbox SET events = 3 WHERE first = 17",
		"UPDATE holdfast_feed SET head = 19", "UPDATE holdfast_feed SET advanced = 19", "UPDATE holdfast_feed SET purged = 1", "UPDATE holdfast_feed SET advanced = 2; DELETE FROM holdfast_outbox WHERE first = 1; UPDATE holdfast_feed SET purged = 3",
		"DELETE FROM holdfast_feed",
	},
	"a page of the feed names as many as it counts": {
		"UPDATE holdfast_outbox SET jobs = {jobs 11} WHERE first = 1", "UPDATE holdfast_outbox SET tokens = {tokens 1 2} WHERE first = 1", "UPDATE holdfast_outbox SET story = {lines 1} WHERE name = 'story'",
		"UPDATE holdfast_outbox SET story = NULL WHERE name = 'story'", "UPDATE holdfast_outbox SET jobs = NULL WHERE first = 1",
	},
	"a purged job is deleted": {"UPDATE holdfast_tombstone SET job = {id 11} WHERE job = {id 14}"},
	"purged jobs are counted": {"UPDATE holdfast_purge_count SET jobs = 0", "DELETE FROM holdfast_purge_count WHERE rule = 'a day'"},
	markRule: {
		wipedTo, wipedTo + "UPDATE holdfast_event SET subject = 'audit', job = NULL, name = 'shortened', reason = 'nothing' WHERE id = 3",
		cutOff + "UPDATE holdfast_event SET reason = replace(reason, 'link 1', 'link 2') WHERE subject = 'audit'", cutOff + "UPDATE holdfast_feed SET anchored = {hash ab}", cutOff + "UPDATE holdfast_feed SET anchor = 0, anchored = NULL",
	},
	"the creation of an API key is in the audit log": {keyMade},
	chainRule: {
		"UPDATE holdfast_event SET reason = 'nobody' WHERE id = 1", "UPDATE holdfast_event SET at = {at 0} WHERE id = 2", "UPDATE holdfast_event SET request = NULL WHERE id = 2", "UPDATE holdfast_event SET job = {id 11} WHERE id = 3",
		"DELETE FROM holdfast_event WHERE id = 1", "DELETE FROM holdfast_event WHERE id = 2", "DELETE FROM holdfast_event WHERE id = 3", "DELETE FROM holdfast_event WHERE link > 0",
		"UPDATE holdfast_event SET hash = {hash ab} WHERE id = 2", "UPDATE holdfast_event SET link = 5 WHERE id = 3", "UPDATE holdfast_feed SET link = 2", "UPDATE holdfast_feed SET hash = {hash ab}", "UPDATE holdfast_feed SET anchor = 1",
		cutOff + "UPDATE holdfast_feed SET anchored = {hash ab}", "UPDATE holdfast_event SET link = 4, hash = {hash ab} WHERE id = 4", "UPDATE holdfast_feed SET link = 0, hash = NULL",
	},
	"attempts, events and other rows belong to a job that exists": {
		"UPDATE holdfast_artifact SET job = {id 77} WHERE job = {id 11}", "UPDATE holdfast_after SET job = {id 77} WHERE job = {id 13}", "UPDATE holdfast_after SET upstream = {id 77} WHERE job = {id 13}",
		"UPDATE holdfast_event SET job = {id 77} WHERE job = {id 15}; UPDATE holdfast_purge_count SET jobs = 1",
	},
	"a redriven job has reached its generation": {"INSERT INTO holdfast_redriven (redrive, job, generation, at) VALUES ({id 101}, {id 14}, 1, {at 0})"},
}

// allowed are scripts that break no rule: what groups, retention and a store in use do.
var allowed = []string{
	"",
	cutOff,
	cutOff + keyMade,
	keyMade + "INSERT INTO holdfast_event (id, subject, at, name, actor, token, generation) {own} VALUES (98, 'key/ada', {at 0}, 'made', 'ada', 0, 0)",
	"DELETE FROM holdfast_tombstone",
	"DELETE FROM holdfast_outbox WHERE first < 10; UPDATE holdfast_feed SET purged = 9",
	"DELETE FROM holdfast_outbox; UPDATE holdfast_feed SET purged = 18",
	"UPDATE holdfast_group SET state = 'cancelled' WHERE id = {id 201}",
	"UPDATE holdfast_group SET live = {id 25} WHERE id = {id 202}",
	ended21 + "UPDATE holdfast_feed SET followed = 17",
	ended21 + "UPDATE holdfast_group SET attend = TRUE WHERE id = {id 202}",
	failed21 + "UPDATE holdfast_after SET regardless = TRUE",
	failed21 + "UPDATE holdfast_feed SET followed = 17",
	"DELETE FROM holdfast_after WHERE job = {id 23}; UPDATE holdfast_group SET attend = TRUE WHERE id = {id 202}",
	"UPDATE holdfast_group SET state = 'processing', settled_at = NULL, attend = TRUE WHERE id = {id 204}",
	"UPDATE holdfast_group SET state = 'processing', settled_at = NULL WHERE id = {id 204}; UPDATE holdfast_feed SET followed = 17",
	"INSERT INTO holdfast_redriven (redrive, job, generation, at, outcome) VALUES ({id 101}, {id 14}, 1, {at 0}, 'complete')",
	"UPDATE holdfast_tombstone SET job = {id 11}, purged_at = {at -995} WHERE job = {id 15}; DELETE FROM holdfast_event WHERE id = 3; UPDATE holdfast_feed SET link = 2, hash = (SELECT hash FROM holdfast_event WHERE id = 2)",
	"UPDATE holdfast_finished SET generation = 2 WHERE job = {id 26}; " + cutOff,
}

// askedOnBoth runs one script after the other in the campaign, each undone before the next, and passes on what the
// integrity check finds.
func askedOnBoth(t *testing.T, each func(t *testing.T, check func(script string) (rules []string))) {
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		begin, undo := "BEGIN", "ROLLBACK"
		run := plant
		if s, is := i.q.(*tables); is { // each script has its own savepoint
			begin, undo = "SAVEPOINT campaign", "ROLLBACK TO campaign"
			run = func(text string) {
				if err := sqlitex.ExecuteTransient(s.conn, text, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		each(t, func(script string) (rules []string) {
			run(begin)
			defer run(undo)
			plant(script)
			findings, err := i.CheckIntegrity(t.Context())
			if err != nil {
				t.Fatalf("after %q the integrity check failed: %v", script, err)
			}
			for _, f := range findings {
				if f.Job == "" || f.Detail == "" {
					t.Errorf("after %q a finding names nothing: %+v", script, f)
				}
				rules = append(rules, f.Rule)
			}
			return rules
		})
	})
}

func TestEveryBrokenRuleAboutGroupsIsFoundOnBoth(t *testing.T) {
	askedOnBoth(t, func(t *testing.T, check func(string) []string) {
		for rule, all := range groupDamages {
			for _, damage := range all {
				if rules := check(damage); !slices.Contains(rules, rule) {
					t.Errorf("after %q the rule %q was not found broken; found: %v", damage, rule, rules)
				}
			}
		}
	})
}

func TestWhatGroupsAndRetentionDoToAHealthyStoreIsNoFinding(t *testing.T) {
	askedOnBoth(t, func(t *testing.T, check func(string) []string) {
		for _, planted := range allowed {
			if rules := check(planted); len(rules) != 0 {
				t.Errorf("after %q: %v", planted, rules)
			}
		}
	})
}

func TestEventsWithoutNumbersAreNeitherReadNorActedOn(t *testing.T) {
	s := openPostgres(t)
	s.plant(inDialect(Postgres, campaign))
	i := New(s, Postgres)
	s.plant(inDialect(Postgres, sealed(t, i)+ended21+"INSERT INTO holdfast_outbox (events, name, at, jobs, tokens) VALUES (1, 'complete', {at -1}, {jobs 21}, {tokens 1})"))
	if feed, err := i.Feed(t.Context(), 18, 5); err != nil || len(feed.Events) != 0 || feed.Head != 18 {
		t.Errorf("%+v, error %v", feed, err)
	}
	if findings, err := i.CheckIntegrity(t.Context()); err != nil || len(findings) != 0 {
		t.Errorf("findings %v, error %v", findings, err)
	}
}

func TestTheFirstLineThatDoesNotFitIsNamed(t *testing.T) {
	onBoth(t, func(t *testing.T, i *Inspector, plant func(string)) {
		plant("UPDATE holdfast_event SET actor = 'eve' WHERE id > 1")
		findings, err := i.CheckIntegrity(t.Context())
		if err != nil || len(findings) != 1 || findings[0].Job != "chain at link 2" {
			t.Errorf("findings %v, error %v", findings, err)
		}
	})
}
