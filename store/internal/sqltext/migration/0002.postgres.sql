-- Groups, the feed of what happened, and what retention leaves behind.

-- Work that belongs together. The members are the truth: state and counts are what they made of it when it was last settled.
CREATE TABLE holdfast_group (
    id          uuid PRIMARY KEY,
    name        text,
    owner       text,
    parent      uuid,
    quorum      integer NOT NULL DEFAULT 0,
    expire_at   timestamptz,
    then_jobs   json, -- what follows an outcome
    created_at  timestamptz NOT NULL,
    sealed_at   timestamptz,
    ending      text CHECK (ending IN ('cancelled', 'expired')), -- what is left of it is to be cancelled
    generation  integer NOT NULL DEFAULT 1 CHECK (generation >= 1),
    state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'processing', 'ready', 'partial', 'failed', 'cancelled', 'expired')),
    settled_at  timestamptz,
    complete    integer, -- members, when it was settled
    failed      integer,
    cancelled   integer,
    attend      boolean NOT NULL DEFAULT false, -- to be looked at although no member of it has just ended
    live        uuid, -- every member with a higher id has ended: where to look for one that has not
    CHECK ((settled_at IS NOT NULL) = (state NOT IN ('open', 'processing'))),
    CHECK ((sealed_at IS NULL) = (state = 'open'))
);
CREATE INDEX holdfast_group_parent ON holdfast_group (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX holdfast_group_unsettled ON holdfast_group (parent) WHERE parent IS NOT NULL AND settled_at IS NULL;
CREATE INDEX holdfast_group_owner ON holdfast_group (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_group_attend ON holdfast_group (id) WHERE attend;
CREATE INDEX holdfast_group_expire ON holdfast_group (expire_at) WHERE expire_at IS NOT NULL AND settled_at IS NULL AND ending IS NULL;

-- Which members of a group end before which. Facts: written once, with the job that waits.
CREATE TABLE holdfast_after (
    upstream   uuid NOT NULL,
    job        uuid NOT NULL,
    regardless boolean NOT NULL, -- it starts however they ended
    PRIMARY KEY (upstream, job)
);
CREATE INDEX holdfast_after_job ON holdfast_after (job, upstream);

-- What happened, as the feed tells it: one row for everything of a sort that one transaction did. A job's facts, its attempts and its
-- end are rows that do not change, so a page only names them. It is numbered after it was committed (Sequence), so that no
-- reader passes by a number that is still to come.
CREATE TABLE holdfast_outbox (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    first  bigint, -- the number of its first event; null: not numbered yet
    events integer NOT NULL CHECK (events > 0),
    name   text NOT NULL, -- what befell these jobs, or 'story'
    at     timestamptz NOT NULL,
    jobs   uuid[],
    tokens integer[],
    story  bigint[]       -- lines of holdfast_event
);
CREATE UNIQUE INDEX holdfast_outbox_first ON holdfast_outbox (first) WHERE first IS NOT NULL;
CREATE INDEX holdfast_outbox_new ON holdfast_outbox (first, id) WHERE first IS NULL; -- in an order that no other index has, so that none is mistaken for it
ALTER TABLE holdfast_outbox ALTER jobs SET STORAGE EXTERNAL, ALTER tokens SET STORAGE EXTERNAL, ALTER story SET STORAGE EXTERNAL; -- ids hardly get smaller

-- Where the feed, the chain and those who follow them stand. One row.
CREATE TABLE holdfast_feed (
    one        integer PRIMARY KEY CHECK (one = 1),
    head       bigint NOT NULL DEFAULT 0, -- the number of the newest event
    purged     bigint NOT NULL DEFAULT 0, -- the number of the last one that was forgotten
    concluded  bigint NOT NULL DEFAULT 0, -- how far groups have followed
    link       bigint NOT NULL DEFAULT 0, -- the last line of the chain, and its hash
    hash       bytea,
    anchor     bigint NOT NULL DEFAULT 0, -- the last line of the chain that was forgotten, and its hash
    anchored   bytea
);
INSERT INTO holdfast_feed (one) VALUES (1);

-- Which events of jobs are written to the feed, and for whom.
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

-- How many there were. Counts outlive the tombstones.
CREATE TABLE holdfast_purge_count (
    rule  text NOT NULL,
    kind  text NOT NULL,
    state text NOT NULL,
    code  text NOT NULL,
    jobs  bigint NOT NULL,
    last  timestamptz NOT NULL,
    PRIMARY KEY (rule, kind, state, code)
);

-- What jobs need or have made that lies elsewhere, and expires on its own clock.
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

-- Retention asks by the job where nobody else does.
CREATE INDEX holdfast_idempotency_job ON holdfast_idempotency (job);
CREATE INDEX holdfast_deadline_job ON holdfast_deadline (job);
CREATE INDEX holdfast_redriven_job ON holdfast_redriven (job, redrive);
CREATE INDEX holdfast_error_tally_step ON holdfast_error_tally (step);

-- What befalls jobs is told by the database itself, in the transaction that does it: no path can forget it. One page for a statement,
-- however many rows it had, and none when nobody listens.
-- Who listens is asked once for a statement and a name, never for a row, and in words whose plan the session keeps.
CREATE FUNCTION holdfast_tell_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('queued', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT 'queued', holdfast_now(), count(*), array_agg(id), array_fill(0, ARRAY[count(*)::integer]) FROM told HAVING count(*) > 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_tell AFTER INSERT ON holdfast_job REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION holdfast_tell_job();

CREATE FUNCTION holdfast_tell_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('processing', 'reclaimed', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT n.name, t.claimed_at, cardinality(t.jobs), t.jobs, coalesce(t.tokens, array_fill(1, ARRAY[cardinality(t.jobs)]))
          FROM told t CROSS JOIN LATERAL (SELECT CASE WHEN t.lost IS NULL THEN 'processing' ELSE 'reclaimed' END AS name) n
         WHERE EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN (n.name, '*'));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_tell AFTER INSERT ON holdfast_lease REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION holdfast_tell_lease();

CREATE FUNCTION holdfast_tell_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('retry', 'returned', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT t.name, holdfast_now(), count(*), array_agg(t.job), array_agg(t.token)
          FROM (SELECT job, token, CASE WHEN charge = 'interrupt' THEN 'returned' ELSE 'retry' END AS name FROM told WHERE to_state = 'queued') AS t
         GROUP BY t.name HAVING EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN (t.name, '*'));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_tell AFTER INSERT ON holdfast_attempt REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION holdfast_tell_attempt();

CREATE FUNCTION holdfast_tell_finished() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN ('complete', 'failed', 'expired', 'cancelled', '*')) THEN
        INSERT INTO holdfast_outbox (name, at, events, jobs, tokens)
        SELECT t.state, max(t.finished_at), count(*), array_agg(t.job), array_agg(t.token) FROM told t GROUP BY t.state
        HAVING EXISTS (SELECT FROM holdfast_listen l WHERE l.event IN (t.state, '*') OR t.state = 'failed' AND l.event = 'expired');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_tell AFTER INSERT ON holdfast_finished REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION holdfast_tell_finished();

-- Whatever has a line in a story is in the feed, whoever listens.
CREATE FUNCTION holdfast_tell_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast_outbox (name, at, events, story) SELECT 'story', max(at), count(*), array_agg(id) FROM told HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER holdfast_tell AFTER INSERT ON holdfast_event REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION holdfast_tell_event();
