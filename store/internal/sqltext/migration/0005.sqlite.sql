-- The schema. Facts of a job are in holdfast_job and change after enqueue only when an operator edits the job. Its state is one narrow row in one of
-- four places: holdfast_ready, holdfast_later, holdfast_batch (as a member) or holdfast_finished. Every transition deletes a row in one place and inserts
-- one in another, in one transaction, so a job is always in exactly one place.

-- A lane has the jobs of one queue, kind, owner and dependency: a hold keeps back whole lanes. In holdfast_ready, first attempts have the id of their lane
-- and retries the negative id, because some holds keep back only retries.
CREATE TABLE holdfast_lane (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    kind  TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',
    dependency TEXT NOT NULL DEFAULT '', -- what its jobs name; empty: the dependency of the kind
    UNIQUE (queue, kind, owner, dependency)
) STRICT;

-- The dependency of the jobs of a kind, as its workers declared it.
CREATE TABLE holdfast_kind (
    kind       TEXT PRIMARY KEY,
    dependency TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The facts of jobs. Times are microseconds since 1970, ids are 16 bytes.
CREATE TABLE holdfast_job (
    id              BLOB PRIMARY KEY,
    lane            INTEGER NOT NULL,
    kind            TEXT NOT NULL,
    queue           TEXT NOT NULL,
    priority        INTEGER NOT NULL,
    max_attempts    INTEGER NOT NULL DEFAULT 0,
    created_at      INTEGER NOT NULL,
    run_at          INTEGER,
    expire_at       INTEGER,
    owner           TEXT,
    tags            TEXT,
    dependency      TEXT,
    retry_within    INTEGER, -- microseconds
    unique_key      TEXT,
    unique_done     INTEGER NOT NULL DEFAULT 0,
    idempotency_key TEXT,
    group_id        BLOB,
    trace           TEXT, -- the traceparent of the caller that enqueued it
    args            TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_job_owner ON holdfast_job (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_job_group ON holdfast_job (group_id, id) WHERE group_id IS NOT NULL;

-- Jobs that can be claimed now, in the order in which they are claimed. The primary key is the only index.
CREATE TABLE holdfast_ready (
    lane       INTEGER  NOT NULL, -- negative: a retry of that lane
    priority   INTEGER NOT NULL,
    job        BLOB     NOT NULL,
    token      INTEGER  NOT NULL CHECK (token >= 0),
    failures   INTEGER  NOT NULL CHECK (failures >= 0),
    crashes    INTEGER  NOT NULL CHECK (crashes >= 0),
    releases   INTEGER  NOT NULL CHECK (releases >= 0),
    generation INTEGER  NOT NULL CHECK (generation >= 1),
    due_at     INTEGER, -- set if the job came from holdfast_later: when it was due
    PRIMARY KEY (lane, priority, job)
) STRICT, WITHOUT ROWID;

-- Jobs that are scheduled, wait for a retry, or are set aside. Claims do not read them.
CREATE TABLE holdfast_later (
    due_at     INTEGER NOT NULL,
    job        BLOB        NOT NULL UNIQUE,
    token      INTEGER     NOT NULL CHECK (token >= 0),
    failures   INTEGER     NOT NULL CHECK (failures >= 0),
    crashes    INTEGER     NOT NULL CHECK (crashes >= 0),
    releases   INTEGER     NOT NULL CHECK (releases >= 0),
    generation INTEGER     NOT NULL CHECK (generation >= 1),
    hold       TEXT,       -- set aside: behind the hold on this tag, or, if empty, until members of its group have ended. due_at is 365,250 days later then, so that promotion does not find it
    PRIMARY KEY (due_at, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_later_hold ON holdfast_later (hold, job) WHERE hold IS NOT NULL;

-- The jobs that were claimed together: one row for each claim, so that claiming a hundred jobs is one insert and renewing is one update. jobs and members
-- are aligned. A member is removed when it is settled, and the row is deleted with its last member. A settlement is accepted only for a member with the
-- same token, read in the transaction that writes: that is the fence against late workers.
CREATE TABLE holdfast_batch (
    id         BLOB PRIMARY KEY,
    worker     TEXT NOT NULL,
    lost       TEXT,                 -- set if it was reclaimed: the worker that stopped renewing
    claimed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    jobs       BLOB NOT NULL CHECK (length(jobs) > 0 AND length(jobs) % 16 = 0), -- sixteen bytes each
    members    TEXT NOT NULL         -- JSON, for each of the jobs: [token, failures, crashes, releases, generation, started]
) STRICT, WITHOUT ROWID;

CREATE VIEW holdfast_leased AS
SELECT l.id AS batch, l.worker, l.lost, l.claimed_at, l.expires_at, substr(l.jobs, 16 * m.key + 1, 16) AS job, m.value ->> 0 AS token,
       m.value ->> 1 AS failures, m.value ->> 2 AS crashes, m.value ->> 3 AS releases, m.value ->> 4 AS generation, m.value ->> 5 AS started
  FROM holdfast_batch l CROSS JOIN json_each(CASE WHEN json_valid(l.members) THEN l.members END) AS m;

-- Jobs that have ended. (The checks use OR instead of IN: SQLite would build a table of the values for every row it inserts.)
CREATE TABLE holdfast_finished (
    job          BLOB PRIMARY KEY,
    token        INTEGER NOT NULL CHECK (token >= 0),
    failures     INTEGER NOT NULL CHECK (failures >= 0),
    crashes      INTEGER NOT NULL CHECK (crashes >= 0),
    releases     INTEGER NOT NULL CHECK (releases >= 0),
    generation   INTEGER NOT NULL CHECK (generation >= 1),
    started_at   INTEGER,         -- null: it never ran
    finished_at  INTEGER NOT NULL,
    discarded_at INTEGER CHECK (discarded_at IS NULL OR state = 'failed'),
    state        TEXT NOT NULL CHECK (state = 'complete' OR state = 'failed' OR state = 'cancelled'),
    worker       TEXT,
    code         TEXT CHECK ((code IS NOT NULL) = (state = 'failed')),
    fingerprint  TEXT CHECK (fingerprint IS NULL OR state = 'failed'),
    result       TEXT CHECK (result IS NULL OR state = 'complete'),
    upstream     BLOB CHECK (upstream IS NULL OR state = 'cancelled'), -- the member of its group that ended so that this job never ran
    benign       INTEGER NOT NULL DEFAULT 0 -- the failure was expected: the job is not a dead letter, and discarded_at is set from the start
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_dead_letter ON holdfast_finished (job) WHERE state = 'failed' AND discarded_at IS NULL;
CREATE INDEX holdfast_finished_benign ON holdfast_finished (job) WHERE state = 'failed' AND benign = 1;
CREATE INDEX holdfast_finished_code ON holdfast_finished (code, job) WHERE state = 'failed';
CREATE INDEX holdfast_finished_fingerprint ON holdfast_finished (fingerprint, job, discarded_at) WHERE state = 'failed';

-- Attempts that did not complete, inserted in the transaction that ended them. An attempt that released its job stands for the released attempts right
-- before it: repeats is how many, since is when the first of them ended. So a job that is throttled for days has a short story.
CREATE TABLE holdfast_attempt (
    job         BLOB NOT NULL,
    token       INTEGER NOT NULL CHECK (token >= 1),
    generation  INTEGER NOT NULL CHECK (generation >= 1),
    worker      TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    to_state    TEXT NOT NULL CHECK (to_state = 'queued' OR to_state = 'failed' OR to_state = 'cancelled'),
    charge      TEXT CHECK (charge = 'failure' OR charge = 'crash' OR charge = 'release'),
    count       INTEGER NOT NULL DEFAULT 0, -- failures or crashes after this attempt, by its charge
    cap         INTEGER NOT NULL DEFAULT 0, -- the maximum that applied; 0: none
    due_at      INTEGER CHECK (due_at IS NULL OR to_state = 'queued'),
    code        TEXT,
    category    TEXT,
    message     TEXT,
    detail      TEXT,
    context     TEXT,
    dependency  TEXT,
    fingerprint TEXT,
    benign      INTEGER NOT NULL DEFAULT 0,
    why         TEXT,
    said        TEXT CHECK (said IS NULL OR to_state = 'cancelled'), -- the state that the worker reported, if a request to cancel overruled it
    repeats     INTEGER NOT NULL DEFAULT 0,
    since       INTEGER,
    PRIMARY KEY (job, token),
    CHECK (to_state <> 'failed' OR code IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_attempt_fingerprint ON holdfast_attempt (fingerprint, ended_at) WHERE fingerprint IS NOT NULL;

-- Settlements that arrived after the lease was lost. They are shown in the story and never applied.
CREATE TABLE holdfast_late_settlement (
    job         BLOB NOT NULL,
    token       INTEGER NOT NULL,
    to_state    TEXT NOT NULL,
    at          INTEGER NOT NULL,
    took        INTEGER NOT NULL,
    charge      TEXT,
    code        TEXT,
    category    TEXT,
    message     TEXT,
    detail      TEXT,
    context     TEXT,
    dependency  TEXT,
    fingerprint TEXT,
    benign      INTEGER NOT NULL DEFAULT 0,
    why         TEXT,
    PRIMARY KEY (job, token, to_state)
) STRICT, WITHOUT ROWID;

-- Events of the audit log: what people did, and transitions that no other row shows. was has the former values that an edit or a redrive replaced.
CREATE TABLE holdfast_event (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job        BLOB,
    subject    TEXT CHECK ((subject IS NULL) <> (job IS NULL)), -- what the event is about, if it is not a job
    at         INTEGER NOT NULL,
    name       TEXT NOT NULL,
    actor      TEXT NOT NULL,
    reason     TEXT,
    request    TEXT,   -- id of the request that asked for it
    token      INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    link       INTEGER UNIQUE, -- its number in the hash chain; null until it is sealed
    hash       BLOB CHECK ((hash IS NULL) = (link IS NULL)), -- of this event and the one before it
    was        TEXT
) STRICT;
CREATE INDEX holdfast_event_job ON holdfast_event (job, id) WHERE job IS NOT NULL;
CREATE INDEX holdfast_event_subject ON holdfast_event (subject, id) WHERE subject IS NOT NULL;
CREATE INDEX holdfast_event_unsealed ON holdfast_event (id) WHERE link IS NULL;

-- Which job has a unique key. The primary key alone prevents duplicates: no statement checks first.
CREATE TABLE holdfast_unique (
    owner TEXT NOT NULL,
    kind  TEXT NOT NULL,
    key   TEXT NOT NULL,
    job   BLOB NOT NULL,
    PRIMARY KEY (owner, kind, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_idempotency (
    owner      TEXT NOT NULL,
    key        TEXT NOT NULL,
    digest     BLOB NOT NULL, -- of the draft: another draft under the same key is refused
    job        BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

-- Jobs that must start by a time. The row is deleted when the job ends.
CREATE TABLE holdfast_expiry (
    expire_at INTEGER NOT NULL,
    job       BLOB NOT NULL,
    PRIMARY KEY (expire_at, job)
) STRICT, WITHOUT ROWID;

-- Holds. A hold without at_most and per_second keeps back every job.
CREATE TABLE holdfast_hold (
    scope      TEXT NOT NULL CHECK (scope IN ('queue', 'kind', 'owner', 'dependency', 'tag')),
    name       TEXT NOT NULL, -- a name that ends in * means every name with that beginning
    source     TEXT NOT NULL,
    retries    INTEGER NOT NULL DEFAULT 0,
    at_most    INTEGER NOT NULL DEFAULT 0 CHECK (at_most >= 0),
    per_second REAL,
    burst      REAL CHECK ((burst IS NULL) = (per_second IS NULL)),
    level      REAL CHECK ((level IS NULL) = (per_second IS NULL)), -- tokens at level_at
    level_at   INTEGER,
    since      INTEGER NOT NULL,
    until      INTEGER,
    expected   INTEGER,
    actor      TEXT NOT NULL,
    reason     TEXT,
    PRIMARY KEY (scope, name, source)
) STRICT, WITHOUT ROWID;

-- State of breakers, budgets, redrives, policies and so on, written with compare-and-set on version.
CREATE TABLE holdfast_record (
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    version   INTEGER NOT NULL CHECK (version >= 1),
    body      TEXT NOT NULL,
    kept_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- When the next attempt must have started. A row is read once, when its time has come.
CREATE TABLE holdfast_deadline (
    at    INTEGER NOT NULL,
    job   BLOB NOT NULL,
    token INTEGER NOT NULL, -- of the attempt that failed: a job with another token has started since
    PRIMARY KEY (at, job)
) STRICT, WITHOUT ROWID;

-- Which jobs a redrive took, in which generation, and how they ended.
CREATE TABLE holdfast_redriven (
    redrive    BLOB NOT NULL,
    job        BLOB NOT NULL,
    generation INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    outcome    TEXT CHECK (outcome IN ('complete', 'failed', 'cancelled', 'discarded')), -- null: not ended yet
    PRIMARY KEY (redrive, job)
) STRICT, WITHOUT ROWID;

-- Failures with the same fingerprint, written in the transaction that settles a failed attempt.
CREATE TABLE holdfast_error_group (
    fingerprint TEXT PRIMARY KEY,
    code        TEXT NOT NULL,
    category    TEXT,
    message     TEXT,
    detail      TEXT,
    failures    INTEGER NOT NULL,
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    status      TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'acknowledged', 'ignored', 'resolved', 'regressed')),
    until       INTEGER,
    until_count INTEGER,
    resolved_in TEXT,
    actor       TEXT,
    reason      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_error_group_seen ON holdfast_error_group (last_seen, fingerprint);

-- Failures of an error group in steps of five minutes.
CREATE TABLE holdfast_error_count (
    fingerprint TEXT NOT NULL,
    step        INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    queue       TEXT NOT NULL,
    dependency  TEXT NOT NULL,
    version     TEXT NOT NULL,
    failures    INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, step, kind, queue, dependency, version)
) STRICT, WITHOUT ROWID;

-- Requests to cancel a job that is being processed. Its settlement follows and deletes the request.
CREATE TABLE holdfast_cancel (
    job    BLOB PRIMARY KEY,
    at     INTEGER NOT NULL,
    actor  TEXT NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;

-- Checkpoint and progress of a job. Most jobs have none.
CREATE TABLE holdfast_progress (
    job        BLOB PRIMARY KEY,
    since      INTEGER, -- when the generation began, if not at enqueue
    checkpoint TEXT,
    percent    REAL,
    note       TEXT,
    noted_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_worker (
    name       TEXT PRIMARY KEY,
    queues     TEXT NOT NULL,
    kinds      TEXT NOT NULL,
    slots      INTEGER NOT NULL,
    version    TEXT,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    codes      TEXT, -- name of the record with its own failure codes
    policy     INTEGER NOT NULL DEFAULT 0, -- version of the applied policy that it follows
    misses     TEXT  -- what of that policy it does not know
) STRICT, WITHOUT ROWID;

-- Groups. State and counts are those of the last time the group was settled; the members decide.
CREATE TABLE holdfast_group (
    id          BLOB PRIMARY KEY,
    name        TEXT,
    owner       TEXT,
    parent      BLOB,
    quorum      INTEGER NOT NULL DEFAULT 0,
    expire_at   INTEGER,
    then_jobs   TEXT, -- drafts that are enqueued for an outcome
    created_at  INTEGER NOT NULL,
    sealed_at   INTEGER,
    ending      TEXT CHECK (ending IN ('cancelled', 'expired')), -- its remaining members are being cancelled
    generation  INTEGER NOT NULL DEFAULT 1 CHECK (generation >= 1),
    state       TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'processing', 'ready', 'partial', 'failed', 'cancelled', 'expired')),
    settled_at  INTEGER,
    complete    INTEGER, -- how many members, when it was settled
    failed      INTEGER,
    cancelled   INTEGER,
    attend      INTEGER NOT NULL DEFAULT 0, -- to be advanced although no member has just ended
    live        BLOB, -- every member with a higher id has ended: where to search for one that has not
    CHECK ((settled_at IS NOT NULL) = (state NOT IN ('open', 'processing'))),
    CHECK ((sealed_at IS NULL) = (state = 'open'))
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_group_parent ON holdfast_group (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX holdfast_group_owner ON holdfast_group (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_group_attend ON holdfast_group (id) WHERE attend <> 0;
CREATE INDEX holdfast_group_expire ON holdfast_group (expire_at) WHERE expire_at IS NOT NULL AND settled_at IS NULL AND ending IS NULL;

-- Which members of a group wait for which. Written once, with the job that waits.
CREATE TABLE holdfast_after (
    upstream   BLOB NOT NULL,
    job        BLOB NOT NULL,
    regardless INTEGER NOT NULL, -- it starts whatever their outcome
    PRIMARY KEY (upstream, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_after_job ON holdfast_after (job, upstream);

-- The feed: one row for all events of one name that one transaction wrote. The facts of a job, its attempts and its end are rows that do not change, so this
-- row only names them. There is one writer, so a row has its number at once.
CREATE TABLE holdfast_outbox (
    first  INTEGER PRIMARY KEY, -- the number of its first event
    events INTEGER NOT NULL CHECK (events > 0),
    name   TEXT NOT NULL, -- the name of the events, or 'story'
    at     INTEGER NOT NULL,
    jobs   BLOB,          -- sixteen bytes each
    tokens TEXT,          -- JSON, for each of the jobs; null: every token is 0
    story  TEXT           -- JSON: ids in holdfast_event
) STRICT;

-- Positions in the feed and in the hash chain. One row.
CREATE TABLE holdfast_feed (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    head       INTEGER NOT NULL DEFAULT 0, -- the number of the newest event
    purged     INTEGER NOT NULL DEFAULT 0, -- the number of the last deleted event
    advanced   INTEGER NOT NULL DEFAULT 0, -- the last event that groups have processed
    link       INTEGER NOT NULL DEFAULT 0, -- the last event of the chain, and its hash
    hash       BLOB,
    anchor     INTEGER NOT NULL DEFAULT 0, -- the last deleted event of the chain, and its hash
    anchored   BLOB,
    edits      INTEGER NOT NULL DEFAULT 0, -- how often a queued job was edited: a claim whose plan is older plans again
    floor      INTEGER NOT NULL DEFAULT 0  -- in a restored store: tokens up to this may have been used before the restore
) STRICT;
INSERT INTO holdfast_feed (one) VALUES (1);

-- Which events of jobs are written to the feed, and for which listener.
CREATE TABLE holdfast_listen (
    event    TEXT NOT NULL, -- '*': all
    listener TEXT NOT NULL,
    PRIMARY KEY (event, listener)
) STRICT, WITHOUT ROWID;

-- What remains of a job that was purged.
CREATE TABLE holdfast_tombstone (
    job         BLOB PRIMARY KEY,
    kind        TEXT NOT NULL,
    queue       TEXT NOT NULL,
    owner       TEXT,
    group_id    BLOB,
    group_state TEXT,
    state       TEXT NOT NULL,
    code        TEXT,
    finished_at INTEGER NOT NULL,
    purged_at   INTEGER NOT NULL,
    rule        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_tombstone_purged ON holdfast_tombstone (purged_at, job);
CREATE INDEX holdfast_tombstone_group ON holdfast_tombstone (group_id, job) WHERE group_id IS NOT NULL;

-- Redrives of a job whose end is not recorded yet: it is recorded before the job is purged.
CREATE INDEX holdfast_redriven_job ON holdfast_redriven (job) WHERE outcome IS NULL;

-- How many jobs were purged. These counts are kept after the tombstones are deleted.
CREATE TABLE holdfast_purge_count (
    rule  TEXT NOT NULL,
    kind  TEXT NOT NULL,
    state TEXT NOT NULL,
    code  TEXT NOT NULL,
    jobs  INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    PRIMARY KEY (rule, kind, state, code)
) STRICT, WITHOUT ROWID;

-- Files and objects that jobs use or create. They expire on their own.
CREATE TABLE holdfast_artifact (
    job        BLOB NOT NULL,
    name       TEXT NOT NULL,
    ref        TEXT NOT NULL,
    size       INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    expire_at  INTEGER,
    expired_at INTEGER,
    PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_artifact_due ON holdfast_artifact (expire_at) WHERE expired_at IS NULL AND expire_at IS NOT NULL;

-- Results of attempts by minute and queue. Every settlement adds to a row in its own transaction. There is one writer, so there is one shard: 0.
CREATE TABLE holdfast_trend (
    step      INTEGER NOT NULL, -- when the minute begins
    queue     TEXT NOT NULL,    -- empty: not of one queue
    shard     INTEGER NOT NULL,
    complete  INTEGER NOT NULL,
    failed    INTEGER NOT NULL, -- dead letters and benign failures
    retried   INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    PRIMARY KEY (step, queue, shard)
) STRICT, WITHOUT ROWID;

-- Every job with its state, for people and for the inspector.
CREATE VIEW holdfast_jobs AS
SELECT j.*, 'queued' AS state, coalesce(r.due_at, j.created_at) AS due_at, r.token, r.failures, r.crashes, r.releases, r.generation,
       NULL AS worker, NULL AS lease_until, NULL AS started_at, NULL AS finished_at,
       NULL AS discarded_at, NULL AS result, NULL AS upstream, 0 AS waiting
  FROM holdfast_job j JOIN holdfast_ready r ON r.lane IN (j.lane, -j.lane) AND r.priority = j.priority AND r.job = j.id
UNION ALL
SELECT j.*, 'queued', CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - 31557600000000000 END, l.token, l.failures, l.crashes, l.releases, l.generation,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.hold IS ''
  FROM holdfast_job j JOIN holdfast_later l ON l.job = j.id
UNION ALL
SELECT j.*, 'processing', NULL, p.token, p.failures, p.crashes, p.releases, p.generation,
       p.worker, p.expires_at, CASE WHEN p.started THEN p.claimed_at END, NULL, NULL, NULL, NULL, 0
  FROM holdfast_job j JOIN holdfast_leased p ON p.job = j.id
UNION ALL
SELECT j.*, f.state, NULL, f.token, f.failures, f.crashes, f.releases, f.generation,
       f.worker, NULL, f.started_at, f.finished_at, f.discarded_at, f.result, f.upstream, 0
  FROM holdfast_job j JOIN holdfast_finished f ON f.job = j.id;
