-- Trends: what became of attempts.

-- One row for a minute and a queue, added to by every settlement in its own transaction. Who writes is alone, so there is one shard: 0.
CREATE TABLE holdfast_tally (
    step      INTEGER NOT NULL, -- when the minute begins
    queue     TEXT NOT NULL,    -- empty: of no queue in particular
    shard     INTEGER NOT NULL,
    complete  INTEGER NOT NULL,
    failed    INTEGER NOT NULL, -- for good
    retried   INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    PRIMARY KEY (step, queue, shard)
) STRICT, WITHOUT ROWID;

-- The dead letters of an error group are counted from the index alone.
DROP INDEX holdfast_finished_fingerprint;
CREATE INDEX holdfast_finished_fingerprint ON holdfast_finished (fingerprint, job, discarded_at) WHERE state = 'failed';
