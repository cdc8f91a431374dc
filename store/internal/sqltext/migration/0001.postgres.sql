-- The heart. A job's facts change after enqueue only when a person says so; else only narrow rows move between the places where a job can stand:
-- ready, later, a lease, finished. Every move is a delete and an insert in one transaction, so a job stands in exactly one.

-- The one clock. Everything that compares or writes an instant asks it, so that workers' clocks do not matter.
CREATE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- A lane is what a hold can close as a whole: the jobs of one kind, owner and dependency in one queue. Its first attempts wait in
-- ready under its id, its retries under the negative of it, because some holds keep back retries only.
CREATE TABLE holdfast_lane (
    id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    kind  text NOT NULL,
    owner text NOT NULL DEFAULT '',
    dependency text NOT NULL DEFAULT '', -- what its jobs name themselves; or else it is the kind's
    UNIQUE (queue, kind, owner, dependency)
);

-- What the jobs of a kind depend on, as its workers declared it.
CREATE TABLE holdfast_kind (
    kind       text PRIMARY KEY,
    dependency text NOT NULL
);

-- Facts: written once, by COPY in bulk. The arguments are json, not jsonb: kept to the letter, equal on every store.
CREATE TABLE holdfast_job (
    id              uuid PRIMARY KEY,
    lane            integer NOT NULL,
    kind            text NOT NULL,
    queue           text NOT NULL,
    priority        smallint NOT NULL,
    max_attempts    integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL,
    run_at          timestamptz,
    expire_at       timestamptz,
    owner           text,
    tags            text[],
    dependency      text,
    retry_within    bigint, -- microseconds
    unique_key      text,
    unique_done     boolean NOT NULL DEFAULT false,
    idempotency_key text,
    group_id        uuid,
    trace           text, -- the traceparent of whoever enqueued it
    args            json NOT NULL
);
CREATE INDEX holdfast_job_owner ON holdfast_job (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_job_group ON holdfast_job (group_id, id) WHERE group_id IS NOT NULL;

-- Claimable now, in the order in which it is claimed. The key is the only index.
CREATE TABLE holdfast_ready (
    lane       integer  NOT NULL, -- negative: a retry of that lane
    priority   smallint NOT NULL,
    job        uuid     NOT NULL,
    token      integer  NOT NULL DEFAULT 0 CHECK (token >= 0),
    failures   integer  NOT NULL DEFAULT 0 CHECK (failures >= 0),
    crashes    integer  NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    interrupts integer  NOT NULL DEFAULT 0 CHECK (interrupts >= 0),
    generation integer  NOT NULL DEFAULT 1 CHECK (generation >= 1),
    due_at     timestamptz, -- when it came from later: the time it was due
    PRIMARY KEY (lane, priority, job)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Scheduled, or waiting for a retry. Ten million of them cost a claim nothing.
CREATE TABLE holdfast_later (
    due_at     timestamptz NOT NULL,
    job        uuid        NOT NULL UNIQUE,
    token      integer     NOT NULL DEFAULT 0 CHECK (token >= 0),
    failures   integer     NOT NULL DEFAULT 0 CHECK (failures >= 0),
    crashes    integer     NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    interrupts integer     NOT NULL DEFAULT 0 CHECK (interrupts >= 0),
    generation integer     NOT NULL DEFAULT 1 CHECK (generation >= 1),
    hold       text,       -- set aside: behind the hold on this tag, or, when empty, until members of its group have ended; due_at is 365250 days late then, out of promotion's sight
    PRIMARY KEY (due_at, job)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX holdfast_later_hold ON holdfast_later (hold, job) WHERE hold IS NOT NULL;

-- One row per claim: renewing is one narrow update whatever runs. The arrays are aligned; a member leaves them when it is
-- settled, and the row goes with its last member. Membership under the row's lock is the fence.
CREATE TABLE holdfast_lease (
    id          uuid PRIMARY KEY,
    worker      text NOT NULL,
    lost        text,                 -- taken over by reclaim: the worker that went silent
    claimed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    jobs        uuid[]    NOT NULL,
    tokens      integer[],            -- null, as the four below: nothing has befallen any of them yet, and every token is 1
    failures    integer[],
    crashes     integer[],
    interrupts  integer[],
    generations integer[],
    started     boolean[] NOT NULL,
    CHECK (cardinality(jobs) > 0 AND cardinality(tokens) = cardinality(jobs) AND cardinality(failures) = cardinality(jobs)
       AND cardinality(crashes) = cardinality(jobs) AND cardinality(interrupts) = cardinality(jobs)
       AND cardinality(generations) = cardinality(jobs) AND cardinality(started) = cardinality(jobs))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

-- Compressing what lives for a moment costs more than it saves.
ALTER TABLE holdfast_lease ALTER jobs SET STORAGE EXTERNAL, ALTER tokens SET STORAGE EXTERNAL, ALTER failures SET STORAGE EXTERNAL,
    ALTER crashes SET STORAGE EXTERNAL, ALTER interrupts SET STORAGE EXTERNAL, ALTER generations SET STORAGE EXTERNAL, ALTER started SET STORAGE EXTERNAL;

CREATE VIEW holdfast_leased AS
SELECT l.id AS lease, l.worker, l.lost, l.claimed_at, l.expires_at,
       m.job, coalesce(m.token, 1) AS token, coalesce(m.failures, 0) AS failures, coalesce(m.crashes, 0) AS crashes, coalesce(m.interrupts, 0) AS interrupts,
       coalesce(m.generation, 1) AS generation, m.started
  FROM holdfast_lease l
 CROSS JOIN LATERAL unnest(l.jobs, l.tokens, l.failures, l.crashes, l.interrupts, l.generations, l.started)
       AS m (job, token, failures, crashes, interrupts, generation, started);

-- Ended. A row here is the proof of the last transition of the job's generation.
CREATE TABLE holdfast_finished (
    job          uuid PRIMARY KEY,
    token        integer NOT NULL CHECK (token >= 0),
    failures     integer NOT NULL CHECK (failures >= 0),
    crashes      integer NOT NULL CHECK (crashes >= 0),
    interrupts   integer NOT NULL CHECK (interrupts >= 0),
    generation   integer NOT NULL CHECK (generation >= 1),
    started_at   timestamptz,         -- null: it never ran
    finished_at  timestamptz NOT NULL,
    discarded_at timestamptz CHECK (discarded_at IS NULL OR state = 'failed'),
    state        text NOT NULL CHECK (state IN ('complete', 'failed', 'cancelled')),
    worker       text,
    code         text CHECK ((code IS NOT NULL) = (state = 'failed')),
    fingerprint  text CHECK (fingerprint IS NULL OR state = 'failed'),
    result       json CHECK (result IS NULL OR state = 'complete'),
    upstream     uuid CHECK (upstream IS NULL OR state = 'cancelled') -- the member of its group because of which it never ran
);
CREATE INDEX holdfast_dead_letter ON holdfast_finished (job) WHERE state = 'failed' AND discarded_at IS NULL;
CREATE INDEX holdfast_finished_code ON holdfast_finished (code, job) WHERE state = 'failed';
CREATE INDEX holdfast_finished_fingerprint ON holdfast_finished (fingerprint, job) WHERE state = 'failed';

-- Every attempt that did not complete, appended in the transaction that ended it.
CREATE TABLE holdfast_attempt (
    job         uuid NOT NULL,
    token       integer NOT NULL CHECK (token >= 1),
    generation  integer NOT NULL CHECK (generation >= 1),
    worker      text NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    to_state    text NOT NULL CHECK (to_state IN ('queued', 'failed', 'cancelled')),
    charge      text CHECK (charge IN ('failure', 'crash', 'interrupt')),
    count       integer NOT NULL DEFAULT 0, -- failures or crashes after this attempt, by its charge
    cap         integer NOT NULL DEFAULT 0, -- what the count was judged by; 0: no cap
    due_at      timestamptz CHECK (due_at IS NULL OR to_state = 'queued'),
    code        text,
    category    text,
    message     text,
    detail      text,
    context     json,
    dependency  text,
    fingerprint text,
    benign      boolean NOT NULL DEFAULT false,
    why         text,
    said        text CHECK (said IS NULL OR to_state = 'cancelled'), -- what the settlement said, when a request to cancel overruled it
    PRIMARY KEY (job, token),
    CHECK (to_state <> 'failed' OR code IS NOT NULL)
);
CREATE INDEX holdfast_attempt_fingerprint ON holdfast_attempt (fingerprint, ended_at) WHERE fingerprint IS NOT NULL;

-- What arrived after its lease was lost: evidence, never applied.
CREATE TABLE holdfast_late (
    job         uuid NOT NULL,
    token       integer NOT NULL,
    to_state    text NOT NULL,
    at          timestamptz NOT NULL,
    took        interval NOT NULL,
    charge      text,
    code        text,
    category    text,
    message     text,
    detail      text,
    context     json,
    dependency  text,
    fingerprint text,
    benign      boolean NOT NULL DEFAULT false,
    why         text,
    PRIMARY KEY (job, token, to_state)
);

-- What people did, and what no other row proves.
CREATE TABLE holdfast_event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job        uuid,
    subject    text CHECK ((subject IS NULL) <> (job IS NULL)), -- what the event is about, when it is no job
    at         timestamptz NOT NULL,
    name       text NOT NULL,
    actor      text NOT NULL,
    reason     text,
    request    text,   -- in which a person asked for it
    token      integer NOT NULL,
    generation integer NOT NULL,
    link       bigint, -- its place in the chain; null until it is sealed
    hash       bytea CHECK ((hash IS NULL) = (link IS NULL)) -- of this line and the one before it
);
CREATE INDEX holdfast_event_job ON holdfast_event (job, id) WHERE job IS NOT NULL;
CREATE INDEX holdfast_event_subject ON holdfast_event (subject, id) WHERE subject IS NOT NULL;
CREATE UNIQUE INDEX holdfast_event_link ON holdfast_event (link) WHERE link IS NOT NULL;
CREATE INDEX holdfast_event_unsealed ON holdfast_event (link, id) WHERE link IS NULL; -- in an order that no other index has, so that none is mistaken for it

-- Who holds a unique key. The primary key is the whole of dedupe: no check comes before it.
CREATE TABLE holdfast_unique (
    owner text NOT NULL,
    kind  text NOT NULL,
    key   text NOT NULL,
    job   uuid NOT NULL,
    PRIMARY KEY (owner, kind, key)
);
CREATE INDEX holdfast_unique_job ON holdfast_unique (job); -- freeing asks by job, and asks for every job that ends

CREATE TABLE holdfast_idempotency (
    owner      text NOT NULL,
    key        text NOT NULL,
    digest     bytea NOT NULL, -- of the draft: another draft under the same key is refused
    job        uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, key)
);

-- Jobs that must start by a time. The row stays until the job has ended.
CREATE TABLE holdfast_expiry (
    expire_at timestamptz NOT NULL,
    job       uuid NOT NULL,
    PRIMARY KEY (expire_at, job)
);

-- What is kept back, and how much of it. Without at_most and rate a hold lets nothing through.
CREATE TABLE holdfast_hold (
    scope      text NOT NULL CHECK (scope IN ('queue', 'kind', 'owner', 'dependency', 'tag')),
    name       text NOT NULL, -- a name that ends in * stands for all that begin so
    source     text NOT NULL,
    retries    boolean NOT NULL DEFAULT false,
    at_most    integer NOT NULL DEFAULT 0 CHECK (at_most >= 0),
    per_second double precision,
    burst      double precision CHECK ((burst IS NULL) = (per_second IS NULL)),
    level      double precision CHECK ((level IS NULL) = (per_second IS NULL)), -- tokens at level_at
    level_at   timestamptz,
    since      timestamptz NOT NULL,
    until      timestamptz,
    expected   timestamptz,
    actor      text NOT NULL,
    reason     text,
    PRIMARY KEY (scope, name, source)
);

-- What those who decide remember between decisions, kept by compare-and-set.
CREATE TABLE holdfast_record (
    room    text NOT NULL,
    name    text NOT NULL,
    version integer NOT NULL CHECK (version >= 1),
    body    json NOT NULL,
    kept_at timestamptz NOT NULL,
    PRIMARY KEY (room, name)
);

-- Promises that the next attempt starts in time. A row is looked at once, when its time has come.
CREATE TABLE holdfast_deadline (
    at    timestamptz NOT NULL,
    job   uuid NOT NULL,
    token integer NOT NULL, -- of the attempt that failed: a job with another has started since
    PRIMARY KEY (at, job)
);

-- Which jobs a redrive took, in the generation it began, and what became of them there.
CREATE TABLE holdfast_redriven (
    redrive    uuid NOT NULL,
    job        uuid NOT NULL,
    generation integer NOT NULL,
    at         timestamptz NOT NULL,
    outcome    text CHECK (outcome IN ('complete', 'failed', 'cancelled', 'discarded')), -- null: not known to have ended
    PRIMARY KEY (redrive, job)
);

-- One and the same trouble. Written in the transaction that settles a failed attempt.
CREATE TABLE holdfast_error_group (
    fingerprint text PRIMARY KEY,
    code        text NOT NULL,
    category    text,
    message     text,
    detail      text,
    failures    bigint NOT NULL,
    first_seen  timestamptz NOT NULL,
    last_seen   timestamptz NOT NULL,
    status      text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'acknowledged', 'ignored', 'resolved', 'regressed')),
    until       timestamptz,
    until_count bigint,
    resolved_in text,
    actor       text,
    reason      text
) WITH (fillfactor = 50);
CREATE INDEX holdfast_error_group_seen ON holdfast_error_group (last_seen, fingerprint);

-- Where and when it was seen, in steps of five minutes.
CREATE TABLE holdfast_error_tally (
    fingerprint text NOT NULL,
    step        timestamptz NOT NULL,
    kind        text NOT NULL,
    queue       text NOT NULL,
    dependency  text NOT NULL,
    version     text NOT NULL,
    failures    bigint NOT NULL,
    PRIMARY KEY (fingerprint, step, kind, queue, dependency, version)
) WITH (fillfactor = 70);

-- A request to stop a job that is being processed. Its settlement obeys it and removes it.
CREATE TABLE holdfast_cancel (
    job    uuid PRIMARY KEY,
    at     timestamptz NOT NULL,
    actor  text NOT NULL,
    reason text
);

-- What a job takes along from attempt to attempt. Most jobs have none.
CREATE TABLE holdfast_carry (
    job        uuid PRIMARY KEY,
    since      timestamptz, -- when the generation began, if not at enqueue
    checkpoint json,
    percent    double precision,
    note       text,
    noted_at   timestamptz
);

CREATE TABLE holdfast_worker (
    name       text PRIMARY KEY,
    queues     text[] NOT NULL,
    kinds      text[] NOT NULL,
    slots      integer NOT NULL,
    version    text,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    until      timestamptz NOT NULL
);

-- Every job with its standing: what people look at with psql, and what the inspector reads.
CREATE VIEW holdfast_jobs AS
SELECT j.*, 'queued' AS state, coalesce(r.due_at, j.created_at) AS due_at, r.token, r.failures, r.crashes, r.interrupts, r.generation,
       NULL::text AS worker, NULL::timestamptz AS lease_until, NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at,
       NULL::timestamptz AS discarded_at, NULL::json AS result, NULL::uuid AS upstream, false AS waiting
  FROM holdfast_job j JOIN holdfast_ready r ON r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id
UNION ALL
SELECT j.*, 'queued', CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - interval '8766000 hours' END, l.token, l.failures, l.crashes, l.interrupts, l.generation,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.hold IS NOT DISTINCT FROM ''
  FROM holdfast_job j JOIN holdfast_later l ON l.job = j.id
UNION ALL
SELECT j.*, 'processing', NULL, p.token, p.failures, p.crashes, p.interrupts, p.generation,
       p.worker, p.expires_at, CASE WHEN p.started THEN p.claimed_at END, NULL, NULL, NULL, NULL, false
  FROM holdfast_job j JOIN holdfast_leased p ON p.job = j.id
UNION ALL
SELECT j.*, f.state, NULL, f.token, f.failures, f.crashes, f.interrupts, f.generation,
       f.worker, NULL, f.started_at, f.finished_at, f.discarded_at, f.result, f.upstream, false
  FROM holdfast_job j JOIN holdfast_finished f ON f.job = j.id;
