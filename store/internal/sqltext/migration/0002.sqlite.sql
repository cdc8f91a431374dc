-- Groups, the feed of what happened, and what retention leaves behind.

-- Work that belongs together. The members are the truth: state and counts are what they made of it when it was last settled.
CREATE TABLE holdfast_group (
    id          BLOB PRIMARY KEY,
    name        TEXT,
    owner       TEXT,
    parent      BLOB,
    quorum      INTEGER NOT NULL DEFAULT 0,
    expire_at   INTEGER,
    then_jobs   TEXT, -- what follows an outcome
    created_at  INTEGER NOT NULL,
    sealed_at   INTEGER,
    ending      TEXT CHECK (ending IN ('cancelled', 'expired')), -- what is left of it is to be cancelled
    generation  INTEGER NOT NULL DEFAULT 1 CHECK (generation >= 1),
    state       TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'processing', 'ready', 'partial', 'failed', 'cancelled', 'expired')),
    settled_at  INTEGER,
    complete    INTEGER, -- members, when it was settled
    failed      INTEGER,
    cancelled   INTEGER,
    attend      INTEGER NOT NULL DEFAULT 0, -- to be looked at although no member of it has just ended
    live        BLOB, -- every member with a higher id has ended: where to look for one that has not
    CHECK ((settled_at IS NOT NULL) = (state NOT IN ('open', 'processing'))),
    CHECK ((sealed_at IS NULL) = (state = 'open'))
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_group_parent ON holdfast_group (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX holdfast_group_owner ON holdfast_group (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX holdfast_group_attend ON holdfast_group (id) WHERE attend <> 0;
CREATE INDEX holdfast_group_expire ON holdfast_group (expire_at) WHERE expire_at IS NOT NULL AND settled_at IS NULL AND ending IS NULL;

-- Which members of a group end before which. Facts: written once, with the job that waits.
CREATE TABLE holdfast_after (
    upstream   BLOB NOT NULL,
    job        BLOB NOT NULL,
    regardless INTEGER NOT NULL, -- it starts however they ended
    PRIMARY KEY (upstream, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_after_job ON holdfast_after (job, upstream);

-- What happened, as the feed tells it: one row for everything of a sort that one transaction did. A job's facts, its attempts and its
-- end are rows that do not change, so a page only names them. Who writes is alone, so a page has its number at once.
CREATE TABLE holdfast_outbox (
    first  INTEGER PRIMARY KEY, -- the number of its first event
    events INTEGER NOT NULL CHECK (events > 0),
    name   TEXT NOT NULL, -- what befell these jobs, or 'story'
    at     INTEGER NOT NULL,
    jobs   BLOB,          -- sixteen bytes each
    tokens TEXT,          -- JSON, for each of the jobs; null: every token is 0
    story  TEXT           -- JSON: lines of holdfast_event
) STRICT;

-- Where the feed, the chain and those who follow them stand. One row.
CREATE TABLE holdfast_feed (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    head       INTEGER NOT NULL DEFAULT 0, -- the number of the newest event
    purged     INTEGER NOT NULL DEFAULT 0, -- the number of the last one that was forgotten
    concluded  INTEGER NOT NULL DEFAULT 0, -- how far groups have followed
    link       INTEGER NOT NULL DEFAULT 0, -- the last line of the chain, and its hash
    hash       BLOB,
    anchor     INTEGER NOT NULL DEFAULT 0, -- the last line of the chain that was forgotten, and its hash
    anchored   BLOB,
    edits      INTEGER NOT NULL DEFAULT 0, -- how often a queued job was edited: a claim that has looked before looks again
    floor      INTEGER NOT NULL DEFAULT 0  -- in a restored store: tokens up to this may have been given before
) STRICT;
INSERT INTO holdfast_feed (one) VALUES (1);

-- Which events of jobs are written to the feed, and for whom.
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

-- Which redrives took a job and do not know its end yet: they are told before it is purged.
CREATE INDEX holdfast_redriven_job ON holdfast_redriven (job) WHERE outcome IS NULL;

-- How many there were. Counts outlive the tombstones.
CREATE TABLE holdfast_purge_count (
    rule  TEXT NOT NULL,
    kind  TEXT NOT NULL,
    state TEXT NOT NULL,
    code  TEXT NOT NULL,
    jobs  INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    PRIMARY KEY (rule, kind, state, code)
) STRICT, WITHOUT ROWID;

-- What jobs need or have made that lies elsewhere, and expires on its own clock.
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
