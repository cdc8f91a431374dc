-- The schema. Facts of a job are in holdfast_job and change after enqueue only when an operator edits the job. Its state is one narrow row in one of
-- four places: holdfast_ready, holdfast_later, holdfast_batch (as a member) or holdfast_finished. Every transition deletes a row in one place and inserts
-- one in another, in one transaction, so a job is always in exactly one place.

-- The clock of the store. Every statement that writes or compares a time uses it, so the clocks of workers do not matter.
CREATE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- A lane has the jobs of one queue, kind, owner and dependency: a hold keeps back whole lanes. In holdfast_ready, first attempts have the id of their lane
-- and retries the negative id, because some holds keep back only retries.
CREATE TABLE holdfast_lane (
    id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    kind  text NOT NULL,
    owner text NOT NULL DEFAULT '',
    dependency text NOT NULL DEFAULT '', -- what its jobs name; empty: the dependency of the kind
    UNIQUE (queue, kind, owner, dependency)
);

-- The dependency of the jobs of a kind, as its workers declared it.
CREATE TABLE holdfast_kind (
    kind       text PRIMARY KEY,
    dependency text NOT NULL
);

-- The facts of jobs, written with COPY in bulk. The arguments are json, not jsonb, so that they are returned byte for byte.
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
    trace           text, -- the traceparent of the caller that enqueued it
    args            json NOT NULL
);
CREATE INDEX holdfast_job_owner ON holdfast_job (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_job_group ON holdfast_job (group_id, id) WHERE group_id IS NOT NULL;

-- Jobs that can be claimed now, in the order in which they are claimed. The primary key is the only index.
CREATE TABLE holdfast_ready (
    lane       integer  NOT NULL, -- negative: a retry of that lane
    priority   smallint NOT NULL,
    job        uuid     NOT NULL,
    token      integer  NOT NULL DEFAULT 0 CHECK (token >= 0),
    failures   integer  NOT NULL DEFAULT 0 CHECK (failures >= 0),
    crashes    integer  NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    releases   integer  NOT NULL DEFAULT 0 CHECK (releases >= 0),
    generation integer  NOT NULL DEFAULT 1 CHECK (generation >= 1),
    due_at     timestamptz, -- set if the job came from holdfast_later: when it was due
    PRIMARY KEY (lane, priority, job)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Jobs that are scheduled, wait for a retry, or are set aside. Claims do not read them.
CREATE TABLE holdfast_later (
    due_at     timestamptz NOT NULL,
    job        uuid        NOT NULL UNIQUE,
    token      integer     NOT NULL DEFAULT 0 CHECK (token >= 0),
    failures   integer     NOT NULL DEFAULT 0 CHECK (failures >= 0),
    crashes    integer     NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    releases   integer     NOT NULL DEFAULT 0 CHECK (releases >= 0),
    generation integer     NOT NULL DEFAULT 1 CHECK (generation >= 1),
    hold       text,       -- set aside: behind the hold on this tag, or, if empty, until members of its group have ended. due_at is 365,250 days later then, so that promotion does not find it
    PRIMARY KEY (due_at, job)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX holdfast_later_hold ON holdfast_later (hold, job) WHERE hold IS NOT NULL;

-- The jobs that were claimed together: one row for each claim, so that renewing is one narrow update. The arrays are aligned. A member is removed when it
-- is settled, and the row is deleted with its last member. A settlement is accepted only for a member with the same token, read under the row's lock: that
-- is the fence against late workers.
CREATE TABLE holdfast_batch (
    id          uuid PRIMARY KEY,
    worker      text NOT NULL,
    lost        text,                 -- set if it was reclaimed: the worker that stopped renewing
    claimed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    jobs        uuid[]    NOT NULL,
    tokens      integer[],            -- null, like the next four: every member is in its first attempt, with token 1
    failures    integer[],
    crashes     integer[],
    releases    integer[],
    generations integer[],
    started     boolean[] NOT NULL,
    CHECK (cardinality(jobs) > 0 AND cardinality(tokens) = cardinality(jobs) AND cardinality(failures) = cardinality(jobs)
       AND cardinality(crashes) = cardinality(jobs) AND cardinality(releases) = cardinality(jobs)
       AND cardinality(generations) = cardinality(jobs) AND cardinality(started) = cardinality(jobs))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

-- Rows live for seconds: compressing them costs more than it saves.
ALTER TABLE holdfast_batch ALTER jobs SET STORAGE EXTERNAL, ALTER tokens SET STORAGE EXTERNAL, ALTER failures SET STORAGE EXTERNAL,
    ALTER crashes SET STORAGE EXTERNAL, ALTER releases SET STORAGE EXTERNAL, ALTER generations SET STORAGE EXTERNAL, ALTER started SET STORAGE EXTERNAL;

CREATE VIEW holdfast_leased AS
SELECT l.id AS batch, l.worker, l.lost, l.claimed_at, l.expires_at,
       m.job, coalesce(m.token, 1) AS token, coalesce(m.failures, 0) AS failures, coalesce(m.crashes, 0) AS crashes, coalesce(m.releases, 0) AS releases,
       coalesce(m.generation, 1) AS generation, m.started
  FROM holdfast_batch l
 CROSS JOIN LATERAL unnest(l.jobs, l.tokens, l.failures, l.crashes, l.releases, l.generations, l.started)
       AS m (job, token, failures, crashes, releases, generation, started);

-- Jobs that have ended.
CREATE TABLE holdfast_finished (
    job          uuid PRIMARY KEY,
    token        integer NOT NULL CHECK (token >= 0),
    failures     integer NOT NULL CHECK (failures >= 0),
    crashes      integer NOT NULL CHECK (crashes >= 0),
    releases     integer NOT NULL CHECK (releases >= 0),
    generation   integer NOT NULL CHECK (generation >= 1),
    started_at   timestamptz,         -- null: it never ran
    finished_at  timestamptz NOT NULL,
    discarded_at timestamptz CHECK (discarded_at IS NULL OR state = 'failed'),
    state        text NOT NULL CHECK (state IN ('complete', 'failed', 'cancelled')),
    worker       text,
    code         text CHECK ((code IS NOT NULL) = (state = 'failed')),
    fingerprint  text CHECK (fingerprint IS NULL OR state = 'failed'),
    result       json CHECK (result IS NULL OR state = 'complete'),
    upstream     uuid CHECK (upstream IS NULL OR state = 'cancelled'), -- the member of its group that ended so that this job never ran
    benign       boolean NOT NULL DEFAULT false -- the failure was expected: the job is not a dead letter, and discarded_at is set from the start
);
CREATE INDEX holdfast_dead_letter ON holdfast_finished (job) WHERE state = 'failed' AND discarded_at IS NULL;
CREATE INDEX holdfast_finished_benign ON holdfast_finished (job) WHERE state = 'failed' AND benign = true;
CREATE INDEX holdfast_finished_code ON holdfast_finished (code, job) WHERE state = 'failed';
CREATE INDEX holdfast_finished_fingerprint ON holdfast_finished (fingerprint, job, discarded_at) WHERE state = 'failed';

-- Attempts that did not complete, inserted in the transaction that ended them. An attempt that released its job stands for the released attempts right
-- before it: repeats is how many, since is when the first of them ended. So a job that is throttled for days has a short story.
CREATE TABLE holdfast_attempt (
    job         uuid NOT NULL,
    token       integer NOT NULL CHECK (token >= 1),
    generation  integer NOT NULL CHECK (generation >= 1),
    worker      text NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    to_state    text NOT NULL CHECK (to_state IN ('queued', 'failed', 'cancelled')),
    charge      text CHECK (charge IN ('failure', 'crash', 'release')),
    count       integer NOT NULL DEFAULT 0, -- failures or crashes after this attempt, by its charge
    cap         integer NOT NULL DEFAULT 0, -- the maximum that applied; 0: none
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
    said        text CHECK (said IS NULL OR to_state = 'cancelled'), -- the state that the worker reported, if a request to cancel overruled it
    repeats     integer NOT NULL DEFAULT 0,
    since       timestamptz,
    PRIMARY KEY (job, token),
    CHECK (to_state <> 'failed' OR code IS NOT NULL)
);
CREATE INDEX holdfast_attempt_fingerprint ON holdfast_attempt (fingerprint, ended_at) WHERE fingerprint IS NOT NULL;

-- Settlements that arrived after the lease was lost. They are shown in the story and never applied.
CREATE TABLE holdfast_late_settlement (
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

-- Events of the audit log: what people did, and transitions that no other row shows. was has the former values that an edit or a redrive replaced.
CREATE TABLE holdfast_event (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job        uuid,
    subject    text CHECK ((subject IS NULL) <> (job IS NULL)), -- what the event is about, if it is not a job
    at         timestamptz NOT NULL,
    name       text NOT NULL,
    actor      text NOT NULL,
    reason     text,
    request    text,   -- id of the request that asked for it
    token      integer NOT NULL,
    generation integer NOT NULL,
    link       bigint, -- its number in the hash chain; null until it is sealed
    hash       bytea CHECK ((hash IS NULL) = (link IS NULL)), -- of this event and the one before it
    was        json
);
CREATE INDEX holdfast_event_job ON holdfast_event (job, id) WHERE job IS NOT NULL;
CREATE INDEX holdfast_event_subject ON holdfast_event (subject, id) WHERE subject IS NOT NULL;
CREATE UNIQUE INDEX holdfast_event_link ON holdfast_event (link) WHERE link IS NOT NULL;
CREATE INDEX holdfast_event_unsealed ON holdfast_event (link, id) WHERE link IS NULL; -- an order that no other index has, so that the planner does not choose another

-- Which job has a unique key. The primary key alone prevents duplicates: no statement checks first.
CREATE TABLE holdfast_unique (
    owner text NOT NULL,
    kind  text NOT NULL,
    key   text NOT NULL,
    job   uuid NOT NULL,
    PRIMARY KEY (owner, kind, key)
);
CREATE INDEX holdfast_unique_job ON holdfast_unique (job); -- read for every job that ends

CREATE TABLE holdfast_idempotency (
    owner      text NOT NULL,
    key        text NOT NULL,
    digest     bytea NOT NULL, -- of the draft: another draft under the same key is refused
    job        uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, key)
);

-- Jobs that must start by a time. The row is deleted when the job ends.
CREATE TABLE holdfast_expiry (
    expire_at timestamptz NOT NULL,
    job       uuid NOT NULL,
    PRIMARY KEY (expire_at, job)
);

-- Holds. A hold without at_most and per_second keeps back every job.
CREATE TABLE holdfast_hold (
    scope      text NOT NULL CHECK (scope IN ('queue', 'kind', 'owner', 'dependency', 'tag')),
    name       text NOT NULL, -- a name that ends in * means every name with that beginning
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

-- State of breakers, budgets, redrives, policies and so on, written with compare-and-set on version.
CREATE TABLE holdfast_record (
    namespace text NOT NULL,
    name      text NOT NULL,
    version   integer NOT NULL CHECK (version >= 1),
    body      json NOT NULL,
    kept_at   timestamptz NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- When the next attempt must have started. A row is read once, when its time has come.
CREATE TABLE holdfast_deadline (
    at    timestamptz NOT NULL,
    job   uuid NOT NULL,
    token integer NOT NULL, -- of the attempt that failed: a job with another token has started since
    PRIMARY KEY (at, job)
);

-- Which jobs a redrive took, in which generation, and how they ended.
CREATE TABLE holdfast_redriven (
    redrive    uuid NOT NULL,
    job        uuid NOT NULL,
    generation integer NOT NULL,
    at         timestamptz NOT NULL,
    outcome    text CHECK (outcome IN ('complete', 'failed', 'cancelled', 'discarded')), -- null: not ended yet
    PRIMARY KEY (redrive, job)
);

-- Failures with the same fingerprint, written in the transaction that settles a failed attempt.
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

-- Failures of an error group in steps of five minutes.
CREATE TABLE holdfast_error_count (
    fingerprint text NOT NULL,
    step        timestamptz NOT NULL,
    kind        text NOT NULL,
    queue       text NOT NULL,
    dependency  text NOT NULL,
    version     text NOT NULL,
    failures    bigint NOT NULL,
    PRIMARY KEY (fingerprint, step, kind, queue, dependency, version)
) WITH (fillfactor = 70);

-- Requests to cancel a job that is being processed. Its settlement follows and deletes the request.
CREATE TABLE holdfast_cancel (
    job    uuid PRIMARY KEY,
    at     timestamptz NOT NULL,
    actor  text NOT NULL,
    reason text
);

-- Checkpoint and progress of a job. Most jobs have none.
CREATE TABLE holdfast_progress (
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
    until      timestamptz NOT NULL,
    codes      text, -- name of the record with its own failure codes
    policy     integer NOT NULL DEFAULT 0, -- version of the applied policy that it follows
    misses     text  -- what of that policy it does not know
);

-- Groups. State and counts are those of the last time the group was settled; the members decide.
CREATE TABLE holdfast_group (
    id          uuid PRIMARY KEY,
    name        text,
    owner       text,
    parent      uuid,
    quorum      integer NOT NULL DEFAULT 0,
    expire_at   timestamptz,
    then_jobs   json, -- drafts that are enqueued for an outcome
    created_at  timestamptz NOT NULL,
    sealed_at   timestamptz,
    ending      text CHECK (ending IN ('cancelled', 'expired')), -- its remaining members are being cancelled
    generation  integer NOT NULL DEFAULT 1 CHECK (generation >= 1),
    state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'processing', 'ready', 'partial', 'failed', 'cancelled', 'expired')),
    settled_at  timestamptz,
    complete    integer, -- how many members, when it was settled
    failed      integer,
    cancelled   integer,
    attend      boolean NOT NULL DEFAULT false, -- to be advanced although no member has just ended
    live        uuid, -- every member with a higher id has ended: where to search for one that has not
    CHECK ((settled_at IS NOT NULL) = (state NOT IN ('open', 'processing'))),
    CHECK ((sealed_at IS NULL) = (state = 'open'))
);
CREATE INDEX holdfast_group_parent ON holdfast_group (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX holdfast_group_unsettled ON holdfast_group (parent) WHERE parent IS NOT NULL AND settled_at IS NULL;
CREATE INDEX holdfast_group_owner ON holdfast_group (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_group_attend ON holdfast_group (id) WHERE attend;
CREATE INDEX holdfast_group_expire ON holdfast_group (expire_at) WHERE expire_at IS NOT NULL AND settled_at IS NULL AND ending IS NULL;

-- Which members of a group wait for which. Written once, with the job that waits.
CREATE TABLE holdfast_after (
    upstream   uuid NOT NULL,
    job        uuid NOT NULL,
    regardless boolean NOT NULL, -- it starts whatever their outcome
    PRIMARY KEY (upstream, job)
);
CREATE INDEX holdfast_after_job ON holdfast_after (job, upstream);

-- The feed: one row for all events of one name that one transaction wrote. The facts of a job, its attempts and its end are rows that do not change, so this
-- row only names them. A row is numbered after its transaction has committed (Sequence), so that a reader never passes a number that appears later.
CREATE TABLE holdfast_outbox (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    first  bigint, -- the number of its first event; null: not numbered yet
    events integer NOT NULL CHECK (events > 0),
    name   text NOT NULL, -- the name of the events, or 'story'
    at     timestamptz NOT NULL,
    jobs   uuid[],
    tokens integer[],
    story  bigint[]       -- ids in holdfast_event
);
CREATE UNIQUE INDEX holdfast_outbox_first ON holdfast_outbox (first) WHERE first IS NOT NULL;
CREATE INDEX holdfast_outbox_new ON holdfast_outbox (first, id) WHERE first IS NULL; -- an order that no other index has, so that the planner does not choose another
ALTER TABLE holdfast_outbox ALTER jobs SET STORAGE EXTERNAL, ALTER tokens SET STORAGE EXTERNAL, ALTER story SET STORAGE EXTERNAL; -- ids hardly get smaller

-- Positions in the feed and in the hash chain. One row.
CREATE TABLE holdfast_feed (
    one        integer PRIMARY KEY CHECK (one = 1),
    head       bigint NOT NULL DEFAULT 0, -- the number of the newest event
    purged     bigint NOT NULL DEFAULT 0, -- the number of the last deleted event
    advanced   bigint NOT NULL DEFAULT 0, -- the last event that groups have processed
    link       bigint NOT NULL DEFAULT 0, -- the last event of the chain, and its hash
    hash       bytea,
    anchor     bigint NOT NULL DEFAULT 0, -- the last deleted event of the chain, and its hash
    anchored   bytea
);
INSERT INTO holdfast_feed (one) VALUES (1);

-- Which events of jobs are written to the feed, and for which listener.
CREATE TABLE holdfast_listen (
    event    text NOT NULL, -- '*': all
    listener text NOT NULL,
    PRIMARY KEY (event, listener)
);

-- What remains of a job that was purged.
CREATE TABLE holdfast_tombstone (
    job         uuid PRIMARY KEY,
    kind        text NOT NULL,
    queue       text NOT NULL,
    owner       text,
    group_id    uuid,
    group_state text,
    state       text NOT NULL,
    code        text,
    finished_at timestamptz NOT NULL,
    purged_at   timestamptz NOT NULL,
    rule        text NOT NULL
);
CREATE INDEX holdfast_tombstone_purged ON holdfast_tombstone (purged_at, job);
CREATE INDEX holdfast_tombstone_group ON holdfast_tombstone (group_id, job) WHERE group_id IS NOT NULL;

-- How many jobs were purged. These counts are kept after the tombstones are deleted.
CREATE TABLE holdfast_purge_count (
    rule  text NOT NULL,
    kind  text NOT NULL,
    state text NOT NULL,
    code  text NOT NULL,
    jobs  bigint NOT NULL,
    last  timestamptz NOT NULL,
    PRIMARY KEY (rule, kind, state, code)
);

-- Files and objects that jobs use or create. They expire on their own.
CREATE TABLE holdfast_artifact (
    job        uuid NOT NULL,
    name       text NOT NULL,
    ref        text NOT NULL,
    size       bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    expire_at  timestamptz,
    expired_at timestamptz,
    PRIMARY KEY (job, name)
);
CREATE INDEX holdfast_artifact_due ON holdfast_artifact (expire_at) WHERE expired_at IS NULL AND expire_at IS NOT NULL;

CREATE INDEX holdfast_idempotency_job ON holdfast_idempotency (job);
CREATE INDEX holdfast_deadline_job ON holdfast_deadline (job);
CREATE INDEX holdfast_redriven_job ON holdfast_redriven (job, redrive);
CREATE INDEX holdfast_error_count_step ON holdfast_error_count (step);

-- Results of attempts by minute and queue. Every settlement adds to a row in its own transaction. The row is locked until that commits, so there are up to
-- sixteen rows, the shards, and concurrent transactions use different ones. Half of each page is left free for new versions of its rows, so that adding
-- writes no index.
CREATE TABLE holdfast_trend (
    step      timestamptz NOT NULL, -- when the minute begins
    queue     text NOT NULL,        -- empty: not of one queue
    shard     smallint NOT NULL,
    complete  bigint NOT NULL,
    failed    bigint NOT NULL,      -- dead letters and benign failures
    retried   bigint NOT NULL,
    cancelled bigint NOT NULL,
    PRIMARY KEY (step, queue, shard)
) WITH (fillfactor = 50);

-- Every job with its state, for people who use psql and for the inspector.
CREATE VIEW holdfast_jobs AS
SELECT j.*, 'queued' AS state, coalesce(r.due_at, j.created_at) AS due_at, r.token, r.failures, r.crashes, r.releases, r.generation,
       NULL::text AS worker, NULL::timestamptz AS lease_until, NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at,
       NULL::timestamptz AS discarded_at, NULL::json AS result, NULL::uuid AS upstream, false AS waiting
  FROM holdfast_job j JOIN holdfast_ready r ON r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id
UNION ALL
SELECT j.*, 'queued', CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - interval '8766000 hours' END, l.token, l.failures, l.crashes, l.releases, l.generation,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, l.hold IS NOT DISTINCT FROM ''
  FROM holdfast_job j JOIN holdfast_later l ON l.job = j.id
UNION ALL
SELECT j.*, 'processing', NULL, p.token, p.failures, p.crashes, p.releases, p.generation,
       p.worker, p.expires_at, CASE WHEN p.started THEN p.claimed_at END, NULL, NULL, NULL, NULL, false
  FROM holdfast_job j JOIN holdfast_leased p ON p.job = j.id
UNION ALL
SELECT j.*, f.state, NULL, f.token, f.failures, f.crashes, f.releases, f.generation,
       f.worker, NULL, f.started_at, f.finished_at, f.discarded_at, f.result, f.upstream, false
  FROM holdfast_job j JOIN holdfast_finished f ON f.job = j.id;

-- Triggers write the events of jobs, in the transaction of the transition, so that no code path can leave one out. A statement writes one row for all its
-- jobs, and none if there is no listener. Listeners are read once for each statement, never for each row, with a statement whose plan the session keeps.
CREATE FUNCTION holdfast_emit_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('queued', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT 'queued', holdfast_now(), count(*), array_agg(id), array_fill(0, ARRAY[count(*)::integer]) FROM inserted HAVING count(*) > 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_emit AFTER INSERT ON holdfast_job REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION holdfast_emit_job();

CREATE FUNCTION holdfast_emit_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('processing', 'reclaimed', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT n.name, t.claimed_at, cardinality(t.jobs), t.jobs, coalesce(t.tokens, array_fill(1, ARRAY[cardinality(t.jobs)]))
          FROM inserted t CROSS JOIN LATERAL (SELECT CASE WHEN t.lost IS NULL THEN 'processing' ELSE 'reclaimed' END AS name) n
         WHERE EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN (n.name, '*'));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_emit AFTER INSERT ON holdfast_batch REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION holdfast_emit_lease();

CREATE FUNCTION holdfast_emit_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('retry', 'released', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT t.name, holdfast_now(), count(*), array_agg(t.job), array_agg(t.token)
          FROM (SELECT job, token, CASE WHEN charge = 'release' THEN 'released' ELSE 'retry' END AS name FROM inserted WHERE to_state = 'queued') AS t
         GROUP BY t.name HAVING EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN (t.name, '*'));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_emit AFTER INSERT ON holdfast_attempt REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION holdfast_emit_attempt();

CREATE FUNCTION holdfast_emit_finished() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('complete', 'failed', 'expired', 'cancelled', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT t.state, max(t.finished_at), count(*), array_agg(t.job), array_agg(t.token) FROM inserted t GROUP BY t.state
        HAVING EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN (t.state, '*') OR t.state = 'failed' AND l.event = 'expired');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_emit AFTER INSERT ON holdfast_finished REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION holdfast_emit_finished();

-- Events of the audit log are in the feed even without a listener.
CREATE FUNCTION holdfast_emit_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast_outbox (name, at, events, story) SELECT 'story', max(at), count(*), array_agg(id) FROM inserted HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_emit AFTER INSERT ON holdfast_event REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION holdfast_emit_event();
