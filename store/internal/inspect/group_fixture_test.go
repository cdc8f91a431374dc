package inspect

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// campaign is a small store with groups, a feed and tombstones in which every rule holds, inserted alike in both
// databases. Group 201 is partial: 11 is complete, 12 has failed, 13 waited for 12 and was cancelled, 14 was complete
// and is purged. Group 202 is processing: 21 is processing, 22 is ready, 23 waits for 21, 24 for 21 and 22, 25 was
// released, 26 is complete; the groups 203 (open, empty) and 204 (ready by its quorum: 27 is complete, 28 has expired)
// are inside it.
const campaign = `
INSERT INTO holdfast_lane (id, queue, kind, owner, dependency) {own} VALUES (1, 'default', 'mail', 'ann', '');
INSERT INTO holdfast_group (id, name, owner, parent, quorum, then_jobs, created_at, sealed_at, generation, state, settled_at, complete, failed, cancelled) VALUES
 ({id 201}, 'spring', 'ann', NULL, 0, '[{"on":"partial","draft":{"kind":"report"}}]', {at -900}, {at -800}, 2, 'partial', {at -100}, 2, 1, 1),
 ({id 202}, 'summer', 'ann', NULL, 0, NULL, {at -700}, {at -600}, 1, 'processing', NULL, NULL, NULL, NULL),
 ({id 203}, NULL, NULL, {id 202}, 0, NULL, {at -500}, NULL, 1, 'open', NULL, NULL, NULL, NULL),
 ({id 204}, NULL, NULL, {id 202}, 1, NULL, {at -500}, {at -400}, 1, 'ready', {at -300}, 1, 1, 0);
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, owner, group_id, args)
SELECT id, 1, 'mail', 'default', 0, created_at, 'ann', group_id, '{}' FROM (
 SELECT {id 11} AS id, {at -990} AS created_at, {id 201} AS group_id UNION ALL SELECT {id 12}, {at -980}, {id 201} UNION ALL SELECT {id 13}, {at -970}, {id 201}
 UNION ALL SELECT {id 21}, {at -690}, {id 202} UNION ALL SELECT {id 22}, {at -690}, {id 202} UNION ALL SELECT {id 23}, {at -690}, {id 202}
 UNION ALL SELECT {id 24}, {at -690}, {id 202} UNION ALL SELECT {id 25}, {at -690}, {id 202} UNION ALL SELECT {id 26}, {at -690}, {id 202}
 UNION ALL SELECT {id 27}, {at -690}, {id 204} UNION ALL SELECT {id 28}, {at -690}, {id 204}) AS made;
INSERT INTO holdfast_after (upstream, job, regardless) VALUES ({id 12}, {id 13}, FALSE), ({id 21}, {id 23}, TRUE), ({id 22}, {id 24}, FALSE), ({id 21}, {id 24}, FALSE);
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation) VALUES (1, 0, {id 22}, 0, 0, 0, 0, 1);
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold) VALUES
 ({late -690}, {id 23}, 0, 0, 0, 0, 1, ''), ({late -690}, {id 24}, 0, 0, 0, 0, 1, ''), ({at 500}, {id 25}, 1, 0, 0, 1, 1, NULL);
{lease 21}
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, due_at, code, category, message, context) VALUES
 ({id 11}, 1, 1, 'w1', {at -950}, {at -940}, 'queued', 'failure', 1, 3, {at -930}, 'TIMEOUT', 'timeout', 'too slow', '{"http_status":"504"}'),
 ({id 12}, 1, 1, 'w1', {at -950}, {at -910}, 'failed', 'failure', 1, 1, NULL, 'GW_5XX', 'dependency', 'the gateway failed', NULL),
 ({id 25}, 1, 1, 'w1', {at -650}, {at -640}, 'queued', 'release', 0, 0, {at 500}, NULL, NULL, NULL, NULL),
 ({id 28}, 1, 1, 'w1', {at -350}, {at -350}, 'failed', NULL, 0, 0, NULL, 'JOB_EXPIRED', 'expired', 'not started in time', NULL);
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code, upstream) VALUES
 ({id 11}, 2, 1, 0, 0, 1, {at -930}, {at -900}, 'complete', 'w1', NULL, NULL), ({id 12}, 1, 1, 0, 0, 1, {at -950}, {at -910}, 'failed', 'w1', 'GW_5XX', NULL),
 ({id 13}, 0, 0, 0, 0, 1, NULL, {at -890}, 'cancelled', NULL, NULL, {id 12}), ({id 26}, 1, 0, 0, 0, 1, {at -600}, {at -590}, 'complete', 'w1', NULL, NULL),
 ({id 27}, 1, 0, 0, 0, 1, {at -600}, {at -590}, 'complete', 'w1', NULL, NULL), ({id 28}, 1, 0, 0, 0, 1, NULL, {at -350}, 'failed', 'w1', 'JOB_EXPIRED', NULL);
INSERT INTO holdfast_tombstone (job, kind, queue, owner, group_id, group_state, state, code, finished_at, purged_at, rule) VALUES
 ({id 14}, 'mail', 'default', 'ann', {id 201}, 'partial', 'complete', NULL, {at -895}, {at -50}, 'a week'), ({id 15}, 'report', 'bulk', NULL, NULL, NULL, 'failed', 'BAD', {at -994}, {at -50}, 'a day');
INSERT INTO holdfast_purge_count (rule, kind, state, code, jobs, last) VALUES ('a week', 'mail', 'complete', '', 5, {at -50}), ('a day', 'report', 'failed', 'BAD', 1, {at -50});
INSERT INTO holdfast_artifact (job, name, ref, size, created_at, expire_at, expired_at) VALUES
 ({id 11}, 'source', 's3://a', 10, {at -990}, {at -1}, NULL), ({id 11}, 'Result', 's3://b', 20, {at -980}, {at 1}, NULL), ({id 12}, 'source', 's3://c', 30, {at -990}, {at -5}, {at -4}), ({id 12}, 'z', 's3://d', 0, {at -990}, {at -3}, NULL);
INSERT INTO holdfast_event (id, job, subject, at, name, actor, reason, request, token, generation) {own} VALUES
 (1, NULL, 'group/01000000-0000-7000-8000-0000000000c9', {at -100}, 'partial', 'holdfast', '2 of 4 complete', NULL, 0, 2), (2, {id 12}, NULL, {at -90}, 'deadline missed', 'ann', 'too late', 'req-7', 1, 1),
 (3, {id 15}, NULL, {at -995}, 'deadline missed', 'holdfast', NULL, NULL, 1, 1), (4, NULL, 'breaker/gateway', {at -80}, 'opened', 'holdfast', NULL, NULL, 0, 0);
INSERT INTO holdfast_outbox (first, events, name, at, jobs, tokens, story) VALUES
 (1, 3, 'queued', {at -970}, {jobs 11 12 13}, {tokens 0 0 0}, NULL), (4, 2, 'processing', {at -950}, {jobs 11 12}, {tokens 1 1}, NULL), (6, 1, 'retry', {at -939}, {jobs 11}, {tokens 1}, NULL),
 (7, 1, 'reclaimed', {at -930}, {jobs 11}, {tokens 2}, NULL), (8, 2, 'complete', {at -895}, {jobs 11 14}, {tokens 2 1}, NULL), (10, 3, 'failed', {at -350}, {jobs 12 28 15}, {tokens 1 1 1}, NULL),
 (13, 1, 'cancelled', {at -890}, {jobs 13}, {tokens 0}, NULL), (14, 3, 'story', {at -80}, NULL, NULL, {lines 1 99 2}), (17, 2, 'released', {at -640}, {jobs 25 99}, {tokens 1 3}, NULL);
UPDATE holdfast_feed SET head = 18, advanced = 18, followed = 18;
`

// onBoth runs a test on both databases, each with the campaign inserted and its first events sealed. The test may
// insert more.
func onBoth(t *testing.T, law func(t *testing.T, i *Inspector, plant func(string))) {
	for dialect, open := range map[string]func(testing.TB) campaigner{SQLite: func(t testing.TB) campaigner { return openTables(t) }, Postgres: openPostgres} {
		t.Run(dialect, func(t *testing.T) {
			s := open(t)
			plant := func(script string) { s.plant(inDialect(dialect, script)) }
			plant(campaign)
			plant(sealed(t, New(s, dialect)))
			law(t, New(s, dialect), plant)
		})
	}
}

// A campaigner is a database into which the campaign can be inserted.
type campaigner interface {
	Querier
	plant(script string)
}

// sealed seals the campaign's first three events; the fourth is not sealed yet.
func sealed(t *testing.T, i *Inspector) string {
	t.Helper()
	tellings := []feedEvent{{line: 1}, {line: 2}, {line: 3}}
	if err := i.readLines(t.Context(), tellings); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	var hash []byte
	for n := range tellings {
		hash = sqltext.Link(hash, tellings[n].Event)
		fmt.Fprintf(&script, "UPDATE holdfast_event SET link = %d, hash = {hash %x} WHERE id = %d;\n", n+1, hash, n+1)
	}
	fmt.Fprintf(&script, "UPDATE holdfast_feed SET link = 3, hash = {hash %x};\n", hash)
	return script.String()
}

var placeholder = regexp.MustCompile(`\{(own|id|at|late|lease|jobs|tokens|lines|hash|hex)((?: [-\w]+)*)\}`)

// inDialect replaces the placeholders of a script: ids, instants in milliseconds before or after noon, lists, and a
// batch.
func inDialect(dialect, script string) string {
	return placeholder.ReplaceAllStringFunc(script, func(found string) string {
		words := strings.Fields(strings.Trim(found, "{}"))
		if dialect == SQLite {
			return inSQLite(words[0], words[1:])
		}
		return inPostgres(words[0], words[1:])
	})
}

func inSQLite(what string, of []string) string {
	switch what {
	case "id":
		return "x'" + strings.Join(hexes(of), "") + "'"
	case "jobs":
		return "x'" + strings.Join(hexes(of), "") + "'"
	case "at":
		return fmt.Sprint(instant(of[0]).UnixMicro())
	case "late":
		return fmt.Sprint(instant(of[0]).AddDate(0, 0, 365250).UnixMicro())
	case "lease":
		return fmt.Sprintf("INSERT INTO holdfast_batch (id, worker, claimed_at, expires_at, jobs, members) VALUES (x'%s', 'w1', %d, %d, x'%[1]s', '[[1,0,0,0,1,1]]');",
			hexes(of)[0], instant("-500").UnixMicro(), instant("9000").UnixMicro())
	case "tokens", "lines":
		return "'[" + strings.Join(of, ",") + "]'"
	case "hash":
		return "x'" + of[0] + "'"
	case "hex":
		return "lower(hex(" + of[0] + "))"
	}
	return ""
}

func inPostgres(what string, of []string) string {
	at := func(t time.Time) string { return "TIMESTAMPTZ '" + t.Format(time.RFC3339Nano) + "'" }
	switch what {
	case "own":
		return "OVERRIDING SYSTEM VALUE"
	case "id":
		return "CAST('" + hexes(of)[0] + "' AS uuid)"
	case "jobs":
		return "CAST('{" + strings.Join(hexes(of), ",") + "}' AS uuid[])"
	case "at":
		return at(instant(of[0]))
	case "late":
		return at(instant(of[0])) + " + interval '365250 days'"
	case "lease":
		return fmt.Sprintf("INSERT INTO holdfast_batch (id, worker, claimed_at, expires_at, jobs, started) VALUES ('%s', 'w1', %s, %s, '{%[1]s}', '{true}');",
			hexes(of)[0], at(instant("-500")), at(instant("9000")))
	case "hex":
		return "encode(" + of[0] + ", 'hex')"
	case "tokens", "lines":
		return "'{" + strings.Join(of, ",") + "}'"
	}
	return "'\\x" + of[0] + "'"
}

func hexes(numbers []string) (all []string) {
	for _, text := range numbers {
		n, _ := strconv.Atoi(text)
		id := id(n)
		all = append(all, hex.EncodeToString(id[:]))
	}
	return all
}

func instant(milliseconds string) time.Time {
	n, _ := strconv.Atoi(milliseconds)
	return noon.Add(time.Duration(n) * time.Millisecond)
}

// ids returns the ids of the inserted jobs with these numbers.
func ids(numbers ...int) (all []holdfast.ID) {
	for _, n := range numbers {
		all = append(all, id(n))
	}
	return all
}
