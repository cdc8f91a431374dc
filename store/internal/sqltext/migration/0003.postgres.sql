-- Trends: what became of attempts.

-- Every settlement adds to the row of its minute and queue, in its own transaction. A row is locked until that commits, so there are up
-- to sixteen of them, the shards: transactions under way at once add to different ones. Half of each page is left for the next
-- versions of its rows, so that adding to one touches no index.
CREATE TABLE holdfast_tally (
    step      timestamptz NOT NULL, -- when the minute begins
    queue     text NOT NULL,        -- empty: of no queue in particular
    shard     smallint NOT NULL,
    complete  bigint NOT NULL,
    failed    bigint NOT NULL,      -- for good
    retried   bigint NOT NULL,
    cancelled bigint NOT NULL,
    PRIMARY KEY (step, queue, shard)
) WITH (fillfactor = 50);

-- The dead letters of an error group are counted from the index alone.
DROP INDEX holdfast_finished_fingerprint;
CREATE INDEX holdfast_finished_fingerprint ON holdfast_finished (fingerprint, job, discarded_at) WHERE state = 'failed';
