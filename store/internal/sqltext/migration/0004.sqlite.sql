-- Trust: what the review from outside asked for. Each part says which promise needs it.

-- Throttling is free, and a job that is released over and over does not fill its story: an attempt that was released can stand for those released
-- right before it. repeats is how many, since is when the first of them ended.
ALTER TABLE holdfast_attempt ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_attempt ADD COLUMN since INTEGER;

-- Codes live in the store: a live worker names the record of its own failure codes, so that readers know which definitions are in use; and it
-- says which version of the applied policy it follows and what of it it misses, so that an operator sees a worker that does not.
ALTER TABLE holdfast_worker ADD COLUMN codes TEXT;
ALTER TABLE holdfast_worker ADD COLUMN policy INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_worker ADD COLUMN misses TEXT;

-- Benign means benign: a failure that was to be expected ends its job and is no dead letter. Such a row has discarded_at from the start, so that the
-- index and every question about dead letters leave it out; benign tells it from one that a person discarded.
ALTER TABLE holdfast_finished ADD COLUMN benign INTEGER NOT NULL DEFAULT 0;
UPDATE holdfast_finished SET benign = 1, discarded_at = coalesce(discarded_at, finished_at)
 WHERE state = 'failed' AND EXISTS (SELECT 1 FROM holdfast_attempt a WHERE a.job = holdfast_finished.job AND a.token = holdfast_finished.token AND a.benign <> 0);
CREATE INDEX holdfast_finished_benign ON holdfast_finished (job) WHERE state = 'failed' AND benign = 1;

-- Edits and redrives keep what they replace: the former values, sealed with the line of the story, and gone with it.
ALTER TABLE holdfast_event ADD COLUMN was TEXT;

-- A wiped audit log is a finding: a line says how far the log was shortened. Stores that have forgotten lines before get one that tells no age.
INSERT INTO holdfast_event (subject, at, name, actor, reason, token, generation)
SELECT 'audit', CAST(strftime('%s', 'now') AS INTEGER) * 1000000, 'shortened', 'holdfast', '0 lines up to link ' || anchor || ' are forgotten, the newest of 0001-01-01T00:00:00Z; its hash is ' || lower(hex(anchored)), 0, 0
  FROM holdfast_feed WHERE anchor > 0;
