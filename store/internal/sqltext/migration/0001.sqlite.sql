-- The heart. A job's facts change after enqueue only when a person says so; else only narrow rows move between the places where a job can stand:
-- ready, later, a lease, finished. Every move is a delete and an insert in one transaction, so a job stands in exactly one.

-- A lane is what a hold can close as a whole: the jobs of one kind, owner and dependency in one queue. Its first attempts wait in
-- ready under its id, its retries under the negative of it, because some holds keep back retries only.
CREATE TABLE holdfast_lane (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    kind  TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',
    dependency TEXT NOT NULL DEFAULT '', -- what its jobs name themselves; or else it is the kind's
    UNIQUE (queue, kind, owner, dependency)
) STRICT;

-- What the jobs of a kind depend on, as its workers declared it.
CREATE TABLE holdfast_kind (
    kind       TEXT PRIMARY KEY,
    dependency TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Facts: written once. Instants are microseconds since 1970, ids are 16 bytes.
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
    trace           TEXT, -- the traceparent of whoever enqueued it
    args            TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_job_owner ON holdfast_job (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_job_group ON holdfast_job (group_id, id) WHERE group_id IS NOT NULL;

-- Claimable now, in the order in which it is claimed. The key is the only index.
CREATE TABLE holdfast_ready (
    lane       INTEGER  NOT NULL, -- negative: a retry of that lane
    priority   INTEGER NOT NULL,
    job        BLOB     NOT NULL,
    token      INTEGER  NOT NULL CHECK (token >= 0),
    failures   INTEGER  NOT NULL CHECK (failures >= 0),
    crashes    INTEGER  NOT NULL CHECK (crashes >= 0),
    interrupts INTEGER  NOT NULL CHECK (interrupts >= 0),
    generation INTEGER  NOT NULL CHECK (generation >= 1),
    due_at     INTEGER, -- when it came from later: the time it was due
    PRIMARY KEY (lane, priority, job)
) STRICT, WITHOUT ROWID;

-- Scheduled, or waiting for a retry. Ten million of them cost a claim nothing.
CREATE TABLE holdfast_later (
    due_at     INTEGER NOT NULL,
    job        BLOB        NOT NULL UNIQUE,
    token      INTEGER     NOT NULL CHECK (token >= 0),
    failures   INTEGER     NOT NULL CHECK (failures >= 0),
    crashes    INTEGER     NOT NULL CHECK (crashes >= 0),
    interrupts INTEGER     NOT NULL CHECK (interrupts >= 0),
    generation INTEGER     NOT NULL CHECK (generation >= 1),
    hold       TEXT,       -- set aside: behind the hold on this tag, or, when empty, until members of its group have ended; due_at is 365250 days late then, out of promotion's sight
    PRIMARY KEY (due_at, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_later_hold ON holdfast_later (hold, job) WHERE hold IS NOT NULL;

-- One row per claim: a hundred claimed jobs cost one insert, and renewing is one update whatever runs. Jobs and members are
-- aligned; a member leaves both when it is settled, and the row goes with its last member. Membership with its token, in
-- the transaction that writes, is the fence.
CREATE TABLE holdfast_lease (
    id         BLOB PRIMARY KEY,
    worker     TEXT NOT NULL,
    lost       TEXT,                 -- taken over by reclaim: the worker that went silent
    claimed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    jobs       BLOB NOT NULL CHECK (length(jobs) > 0 AND length(jobs) % 16 = 0), -- sixteen bytes each
    members    TEXT NOT NULL         -- JSON, for each of the jobs: [token, failures, crashes, interrupts, generation, started]
) STRICT, WITHOUT ROWID;

CREATE VIEW holdfast_leased AS
SELECT l.id AS lease, l.worker, l.lost, l.claimed_at, l.expires_at, substr(l.jobs, 16 * m.key + 1, 16) AS job, m.value ->> 0 AS token,
       m.value ->> 1 AS failures, m.value ->> 2 AS crashes, m.value ->> 3 AS interrupts, m.value ->> 4 AS generation, m.value ->> 5 AS started
  FROM holdfast_lease l CROSS JOIN json_each(CASE WHEN json_valid(l.members) THEN l.members END) AS m;

-- Ended. A row here is the proof of the last transition of the job's generation. (The checks spell IN out: SQLite would build
-- a table of the values for every row it inserts.)
CREATE TABLE holdfast_finished (
    job          BLOB PRIMARY KEY,
    token        INTEGER NOT NULL CHECK (token >= 0),
    failures     INTEGER NOT NULL CHECK (failures >= 0),
    crashes      INTEGER NOT NULL CHECK (crashes >= 0),
    interrupts   INTEGER NOT NULL CHECK (interrupts >= 0),
    generation   INTEGER NOT NULL CHECK (generation >= 1),
    started_at   INTEGER,         -- null: it never ran
    finished_at  INTEGER NOT NULL,
    discarded_at INTEGER CHECK (discarded_at IS NULL OR state = 'failed'),
    state        TEXT NOT NULL CHECK (state = 'complete' OR state = 'failed' OR state = 'cancelled'),
    worker       TEXT,
    code         TEXT CHECK ((code IS NOT NULL) = (state = 'failed')),
    fingerprint  TEXT CHECK (fingerprint IS NULL OR state = 'failed'),
    result       TEXT CHECK (result IS NULL OR state = 'complete'),
    upstream     BLOB CHECK (upstream IS NULL OR state = 'cancelled') -- the member of its group because of which it never ran
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_dead_letter ON holdfast_finished (job) WHERE state = 'failed' AND discarded_at IS NULL;
CREATE INDEX holdfast_finished_code ON holdfast_finished (code, job) WHERE state = 'failed';
CREATE INDEX holdfast_finished_fingerprint ON holdfast_finished (fingerprint, job) WHERE state = 'failed';

-- Every attempt that did not complete, appended in the transaction that ended it.
CREATE TABLE holdfast_attempt (
    job         BLOB NOT NULL,
    token       INTEGER NOT NULL CHECK (token >= 1),
    generation  INTEGER NOT NULL CHECK (generation >= 1),
    worker      TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    to_state    TEXT NOT NULL CHECK (to_state = 'queued' OR to_state = 'failed' OR to_state = 'cancelled'),
    charge      TEXT CHECK (charge = 'failure' OR charge = 'crash' OR charge = 'interrupt'),
    count       INTEGER NOT NULL DEFAULT 0, -- failures or crashes after this attempt, by its charge
    cap         INTEGER NOT NULL DEFAULT 0, -- what the count was judged by; 0: no cap
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
    said        TEXT CHECK (said IS NULL OR to_state = 'cancelled'), -- what the settlement said, when a request to cancel overruled it
    PRIMARY KEY (job, token),
    CHECK (to_state <> 'failed' OR code IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_attempt_fingerprint ON holdfast_attempt (fingerprint, ended_at) WHERE fingerprint IS NOT NULL;

-- What arrived after its lease was lost: evidence, never applied.
CREATE TABLE holdfast_late (
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

-- What people did, and what no other row proves.
CREATE TABLE holdfast_event (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job        BLOB,
    subject    TEXT CHECK ((subject IS NULL) <> (job IS NULL)), -- what the event is about, when it is no job
    at         INTEGER NOT NULL,
    name       TEXT NOT NULL,
    actor      TEXT NOT NULL,
    reason     TEXT,
    request    TEXT,   -- in which a person asked for it
    token      INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    link       INTEGER UNIQUE, -- its place in the chain; null until it is sealed
    hash       BLOB CHECK ((hash IS NULL) = (link IS NULL)) -- of this line and the one before it
) STRICT;
CREATE INDEX holdfast_event_job ON holdfast_event (job, id) WHERE job IS NOT NULL;
CREATE INDEX holdfast_event_subject ON holdfast_event (subject, id) WHERE subject IS NOT NULL;
CREATE INDEX holdfast_event_unsealed ON holdfast_event (id) WHERE link IS NULL;

-- Who holds a unique key. The primary key is the whole of dedupe: no check comes before it.
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

-- Jobs that must start by a time. The row stays until the job has ended.
CREATE TABLE holdfast_expiry (
    expire_at INTEGER NOT NULL,
    job       BLOB NOT NULL,
    PRIMARY KEY (expire_at, job)
) STRICT, WITHOUT ROWID;

-- What is kept back, and how much of it. Without at_most and rate a hold lets nothing through.
CREATE TABLE holdfast_hold (
    scope      TEXT NOT NULL CHECK (scope IN ('queue', 'kind', 'owner', 'dependency', 'tag')),
    name       TEXT NOT NULL, -- a name that ends in * stands for all that begin so
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

-- What those who decide remember between decisions, kept by compare-and-set.
CREATE TABLE holdfast_record (
    room    TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    body    TEXT NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (room, name)
) STRICT, WITHOUT ROWID;

-- Promises that the next attempt starts in time. A row is looked at once, when its time has come.
CREATE TABLE holdfast_deadline (
    at    INTEGER NOT NULL,
    job   BLOB NOT NULL,
    token INTEGER NOT NULL, -- of the attempt that failed: a job with another has started since
    PRIMARY KEY (at, job)
) STRICT, WITHOUT ROWID;

-- Which jobs a redrive took, in the generation it began, and what became of them there.
CREATE TABLE holdfast_redriven (
    redrive    BLOB NOT NULL,
    job        BLOB NOT NULL,
    generation INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    outcome    TEXT CHECK (outcome IN ('complete', 'failed', 'cancelled', 'discarded')), -- null: not known to have ended
    PRIMARY KEY (redrive, job)
) STRICT, WITHOUT ROWID;

-- One and the same trouble. Written in the transaction that settles a failed attempt.
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

-- Where and when it was seen, in steps of five minutes.
CREATE TABLE holdfast_error_tally (
    fingerprint TEXT NOT NULL,
    step        INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    queue       TEXT NOT NULL,
    dependency  TEXT NOT NULL,
    version     TEXT NOT NULL,
    failures    INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, step, kind, queue, dependency, version)
) STRICT, WITHOUT ROWID;

-- A request to stop a job that is being processed. Its settlement obeys it and removes it.
CREATE TABLE holdfast_cancel (
    job    BLOB PRIMARY KEY,
    at     INTEGER NOT NULL,
    actor  TEXT NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;

-- What a job takes along from attempt to attempt. Most jobs have none.
CREATE TABLE holdfast_carry (
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
    until      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every job with its standing: what people look at, and what the inspector reads.
CREATE VIEW holdfast_jobs AS
SELECT j.*, 'queued' AS state, coalesce(r.due_at, j.created_at) AS due_at, r.token, r.failures, r.crashes, r.interrupts, r.generation,
       NULL AS worker, NULL AS lease_until, NULL AS started_at, NULL AS finished_at,
       NULL AS discarded_at, NULL AS result, NULL AS upstream, 0 AS waiting
  FROM holdfast_job j JOIN holdfast_ready r ON r.lane IN (j.lane, -j.lane) AND r.priority = j.priority AND r.job = j.id
UNION ALL
SELECT j.*, 'queued', CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - 31557600000000000 END, l.token, l.failures, l.crashes, l.interrupts, l.generation,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.hold IS ''
  FROM holdfast_job j JOIN holdfast_later l ON l.job = j.id
UNION ALL
SELECT j.*, 'processing', NULL, p.token, p.failures, p.crashes, p.interrupts, p.generation,
       p.worker, p.expires_at, CASE WHEN p.started THEN p.claimed_at END, NULL, NULL, NULL, NULL, 0
  FROM holdfast_job j JOIN holdfast_leased p ON p.job = j.id
UNION ALL
SELECT j.*, f.state, NULL, f.token, f.failures, f.crashes, f.interrupts, f.generation,
       f.worker, NULL, f.started_at, f.finished_at, f.discarded_at, f.result, f.upstream, 0
  FROM holdfast_job j JOIN holdfast_finished f ON f.job = j.id;
