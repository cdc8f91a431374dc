-- Step names of members, conditions on how members end, and members that are skipped because their conditions cannot hold.
--
-- A program that does not know conditions leaves members with conditions waiting: for each of them holdfast_after has a row in which the member waits for
-- itself. It counts a member that was skipped as cancelled.
-- needs: 5

-- The names of members within their groups. A row is deleted with its job.
CREATE TABLE holdfast_step (
    group_id BLOB NOT NULL,
    name     TEXT NOT NULL,
    job      BLOB NOT NULL UNIQUE,
    PRIMARY KEY (group_id, name)
) STRICT, WITHOUT ROWID;
ALTER TABLE holdfast_tombstone ADD COLUMN step TEXT;

-- The outcome that the upstream must have, if it is neither complete nor any: failed or cancelled; regardless is 1 then. In the row in which a member waits for
-- itself: how many such rows the member has.
ALTER TABLE holdfast_after ADD COLUMN outcome TEXT;
-- Members that were skipped are cancelled members whose end is benign.
ALTER TABLE holdfast_group ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_tombstone ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;

-- The last event that groups have processed, by a program that knows conditions. An older program moves only advanced.
ALTER TABLE holdfast_feed ADD COLUMN followed INTEGER NOT NULL DEFAULT 0;
UPDATE holdfast_feed SET followed = advanced;
