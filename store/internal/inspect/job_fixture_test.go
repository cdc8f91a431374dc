package inspect

import (
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
)

func replaceNoon(script string) string {
	return strings.ReplaceAll(script, "NOON", fmt.Sprint(noon.UnixMicro()))
}

// id returns the id of the inserted job with that number.
func id(n int) holdfast.ID {
	var id holdfast.ID
	id[0], id[6], id[8], id[15] = 1, 0x70, 0x80, byte(n)
	return id
}

// x returns a job's id as a literal.
func x(n int) string {
	id := id(n)
	return fmt.Sprintf("x'%x'", id[:])
}

// script replaces J1, J2, ... J9 by the ids of the inserted jobs, and R1 by the id of the redrive.
func script(text string) string {
	for n := 1; n <= 9; n++ {
		text = strings.ReplaceAll(text, fmt.Sprintf("J%d", n), x(n))
	}
	return strings.ReplaceAll(text, "R1", x(101))
}

// healthy is a small store in which every rule holds: 1 is ready, 2 waits for a retry, 3 is processing, 4 is complete,
// 5 has failed, 6 was cancelled while it was queued, 7 is scheduled, 8 is a discarded failure, 9 was retried by a
// person and is complete. The workers of the kind mail declare the dependency gateway; job 4 names the dependency
// printer itself.
const healthy = `
INSERT INTO holdfast_lane (id, queue, kind, owner, dependency) VALUES (1, 'default', 'mail', '', ''), (2, 'bulk', 'report', '', ''), (3, 'default', 'mail', 'ann', ''), (4, 'default', 'mail', 'bob', ''), (5, 'bulk', 'report', '', 'printer');
INSERT INTO holdfast_kind (kind, dependency) VALUES ('mail', 'gateway');
INSERT INTO holdfast_job (id, lane, kind, queue, priority, max_attempts, created_at, run_at, expire_at, owner, tags, unique_key, unique_done, idempotency_key, args) VALUES
 (J1, 3, 'mail', 'default', 0, 0, NOON - 9000000, NULL, NULL, 'ann', '["red","blue"]', 'one', 0, 'idem', '{"to":1}'),
 (J2, 4, 'mail', 'default', 0, 3, NOON - 8000000, NULL, NULL, 'bob', NULL, NULL, 0, NULL, '{"to":2}'),
 (J3, 1, 'mail', 'default', 0, 0, NOON - 7000000, NULL, NULL, NULL, '["red"]', NULL, 0, NULL, '{"to":3}'),
 (J4, 5, 'report', 'bulk', 0, 0, NOON - 6000000, NULL, NULL, NULL, NULL, 'kept', 1, NULL, '{"to":4}'),
 (J5, 3, 'mail', 'default', 0, 0, NOON - 5000000, NULL, NULL, 'ann', NULL, NULL, 0, NULL, '{"to":5}'),
 (J6, 2, 'report', 'bulk', 0, 0, NOON - 4000000, NULL, NULL, NULL, NULL, NULL, 0, NULL, '{"to":6}'),
 (J7, 2, 'report', 'bulk', 5, 0, NOON - 3000000, NOON + 5000000, NOON + 9000000, NULL, NULL, NULL, 0, NULL, '{"to":7}'),
 (J8, 1, 'mail', 'default', 0, 0, NOON - 2000000, NULL, NULL, NULL, NULL, NULL, 0, NULL, '{"to":8}'),
 (J9, 1, 'mail', 'default', 0, 0, NOON - 1000000, NULL, NULL, NULL, NULL, NULL, 0, NULL, '{"to":9}');
UPDATE holdfast_job SET dependency = 'printer' WHERE id = J4;
UPDATE holdfast_job SET retry_within = 90000000 WHERE id = J2;
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at) VALUES (3, 0, J1, 0, 0, 0, 0, 1, NULL);
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation) VALUES (NOON + 1000000, J2, 1, 1, 0, 0, 1), (NOON + 5000000, J7, 0, 0, 0, 0, 1);
INSERT INTO holdfast_batch (id, worker, lost, claimed_at, expires_at, jobs, members) VALUES (x'0aaa000000007000800000000000000a', 'w1', NULL, NOON - 500000, NOON + 9500000, J3, '[[3,1,1,0,1,1]]');
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, discarded_at, state, worker, code, fingerprint, result) VALUES
 (J4, 1, 0, 0, 0, 1, NOON - 300000, NOON - 200000, NULL, 'complete', 'w1', NULL, NULL, '{"ok":true}'),
 (J5, 2, 2, 0, 0, 1, NOON - 300000, NOON - 200000, NULL, 'failed', 'w1', 'GW_5XX', 'f5', NULL),
 (J6, 0, 0, 0, 0, 1, NULL, NOON - 200000, NULL, 'cancelled', NULL, NULL, NULL, NULL),
 (J8, 1, 1, 0, 0, 1, NOON - 300000, NOON - 200000, NOON - 100000, 'failed', 'w1', 'BAD', 'f8', NULL),
 (J9, 2, 0, 0, 0, 2, NOON - 300000, NOON - 200000, NULL, 'complete', 'w2', NULL, NULL, NULL);
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, due_at, code, category, message, context, fingerprint, why) VALUES
 (J2, 1, 1, 'w1', NOON - 900000, NOON - 800000, 'queued', 'failure', 1, 3, NOON + 1000000, 'GW_5XX', 'dependency', 'the gateway failed', '{"http_status":"502"}', 'f2', 'retry 1 of 3'),
 (J3, 1, 1, 'w1', NOON - 900000, NOON - 800000, 'queued', 'failure', 1, 3, NOON - 700000, 'TIMEOUT', 'timeout', 'too slow', NULL, 'f3', 'retry 1 of 3'),
 (J3, 2, 1, 'w0', NOON - 690000, NOON - 600000, 'queued', 'crash', 1, 3, NOON - 500000, 'LOST_WORKER', 'lost', 'its worker was lost', NULL, 'f4', 'crash 1 of 3'),
 (J5, 1, 1, 'w1', NOON - 900000, NOON - 800000, 'queued', 'failure', 1, 2, NOON - 700000, 'TIMEOUT', 'timeout', 'too slow', NULL, 'f3', 'retry 1 of 2'),
 (J5, 2, 1, 'w1', NOON - 300000, NOON - 200000, 'failed', 'failure', 2, 2, NULL, 'GW_5XX', 'dependency', 'the gateway failed', NULL, 'f5', 'gave up'),
 (J8, 1, 1, 'w1', NOON - 300000, NOON - 200000, 'failed', 'failure', 1, 1, NULL, 'BAD', 'input', 'bad input', NULL, 'f8', 'final'),
 (J9, 1, 1, 'w1', NOON - 900000, NOON - 800000, 'failed', 'failure', 1, 1, NULL, 'BAD', 'input', 'bad input', NULL, 'f8', 'final');
INSERT INTO holdfast_late_settlement (job, token, to_state, at, took, charge, code, category, message, why) VALUES (J3, 1, 'complete', NOON - 650000, 250000, NULL, NULL, NULL, NULL, 'late');
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation) VALUES (J9, NOON - 700000, 'manual retry', 'ann', 'fixed the input', 1, 2), (J8, NOON - 100000, 'discard', 'bob', 'hopeless', 1, 1), (J6, NOON - 200000, 'cancel', 'bob', NULL, 0, 1);
INSERT INTO holdfast_unique (owner, kind, key, job) VALUES ('ann', 'mail', 'one', J1), ('', 'report', 'kept', J4);
INSERT INTO holdfast_idempotency (owner, key, digest, job, created_at) VALUES ('ann', 'idem', x'00', J1, NOON);
INSERT INTO holdfast_expiry (expire_at, job) VALUES (NOON + 9000000, J7);
INSERT INTO holdfast_progress (job, since, checkpoint, percent, note, noted_at) VALUES (J3, NULL, '{"row":7}', 42.5, 'half way', NOON - 100000);
INSERT INTO holdfast_hold (scope, name, source, retries, at_most, per_second, burst, level, level_at, since, until, expected, actor, reason) VALUES
 ('queue', 'bulk', 'operator', 0, 0, NULL, NULL, NULL, NULL, NOON - 1000, NULL, NULL, 'ann', 'too much'),
 ('kind', 'mail', 'operator', 0, 0, NULL, NULL, NULL, NULL, NOON - 1000, NOON - 1, NULL, 'ann', 'over'),
 ('kind', 'report', 'operator', 0, 0, NULL, NULL, NULL, NULL, NOON - 1000, NOON + 1000, NULL, 'bob', NULL),
 ('kind', 'mail', 'limit', 0, 1, NULL, NULL, NULL, NULL, NOON - 20000000, NULL, NULL, 'holdfast', NULL),
 ('dependency', 'gateway', 'breaker', 1, 2, 0.5, 10, 3, NOON - 4000000, NOON - 5000000, NULL, NOON + 1000000, 'holdfast', 'half-open'),
 ('owner', 'a*', 'limit', 0, 4, NULL, NULL, NULL, NULL, NOON - 1000, NULL, NULL, 'holdfast', NULL);
INSERT INTO holdfast_event (subject, at, name, actor, reason, token, generation) VALUES ('breaker/gateway', NOON - 5000000, 'opened', 'holdfast', 'ten of twenty failed', 0, 0), ('breaker/gateway', NOON - 1000000, 'half-open', 'holdfast', NULL, 0, 0), ('breaker/other', NOON, 'opened', 'holdfast', NULL, 0, 0);
INSERT INTO holdfast_record (namespace, name, version, body, kept_at) VALUES ('breaker', 'gateway', 3, '{"state":"half-open"}', NOON - 1000000), ('breaker', 'Zoo', 1, '{}', NOON), ('share', 'ann', 1, '{"weight":3}', NOON);
INSERT INTO holdfast_redriven (redrive, job, generation, at, outcome) VALUES (R1, J9, 2, NOON - 700000, 'complete');
INSERT INTO holdfast_deadline (at, job, token) VALUES (NOON + 90000000, J2, 1);
INSERT INTO holdfast_error_group (fingerprint, code, category, message, detail, failures, first_seen, last_seen, status, until, until_count, resolved_in, actor, reason) VALUES
 ('f2', 'GW_5XX', 'dependency', 'the gateway failed', 'in detail', 10, NOON - 864000000000, NOON - 60000000, 'acknowledged', NULL, NULL, NULL, 'ann', 'on it'),
 ('f3', 'TIMEOUT', 'timeout', 'too slow', NULL, 2, NOON - 800000, NOON - 800000, 'ignored', NOON - 1, NULL, NULL, 'ann', NULL),
 ('f4', 'LOST_WORKER', 'lost', 'its worker was lost', NULL, 1, NOON - 600000, NOON - 600000, 'ignored', NOON + 1, 5, NULL, 'ann', NULL),
 ('f5', 'GW_5XX', 'dependency', 'the gateway failed', NULL, 5, NOON - 200000, NOON - 200000, 'ignored', NULL, 5, NULL, 'ann', NULL),
 ('f8', 'BAD', 'input', 'bad input', NULL, 2, NOON - 800000, NOON - 200000, 'resolved', NULL, NULL, 'v2', 'bob', NULL);
INSERT INTO holdfast_error_count (fingerprint, step, kind, queue, dependency, version, failures) VALUES
 ('f2', NOON - 864000000000, 'old', 'old', 'old', 'v0', 1), ('f2', NOON - 259200000000, 'mail', 'default', '', 'v1', 2),
 ('f2', NOON - 36000000000, 'mail', 'default', 'gateway', 'v1', 1), ('f2', NOON - 7200000000, 'report', 'bulk', 'gateway', '', 1),
 ('f2', NOON - 3600000000, 'mail', 'default', 'gateway', 'v2', 1), ('f2', NOON, 'mail', 'default', 'gateway', 'v2', 3),
 ('f8', NOON, 'mail', 'default', '', 'v1', 2);
INSERT INTO holdfast_worker (name, queues, kinds, slots, started_at, seen_at, until) VALUES ('w1', '["default"]', '["mail"]', 4, NOON - 1000, NOON, NOON + 1000), ('w0', '["default"]', '["mail"]', 4, NOON - 1000, NOON - 500, NOON - 1);
`

// setAside puts job 1, which was ready, behind the hold on one of its tags.
const setAside = `
DELETE FROM holdfast_ready WHERE job = J1;
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold) VALUES (NOON - 9000000 + 31557600000000000, J1, 0, 0, 0, 0, 1, 'blue');
INSERT INTO holdfast_hold (scope, name, source, since, actor) VALUES ('tag', 'blue', 'operator', NOON - 1000, 'ann');
`

// retried is job 2, ready for its retry.
const retried = `
DELETE FROM holdfast_later WHERE job = J2;
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at) VALUES (-4, 0, J2, 1, 1, 0, 0, 1, NOON - 1);
`
