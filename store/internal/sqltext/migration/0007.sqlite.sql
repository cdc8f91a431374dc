-- needs: 5
-- Order keys: jobs of one owner with one key run one at a time, in the order of seq. A job that is not the first of its line waits in holdfast_later with the
-- hold ''. A program of version 5 that ends a job leaves its row; AdvanceGroups of any program of this version moves the line on.
CREATE TABLE holdfast_order (
    job   BLOB PRIMARY KEY,
    owner TEXT NOT NULL,
    key   TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    hold  INTEGER NOT NULL, -- as a dead letter it keeps the others waiting
    live  INTEGER NOT NULL  -- in line; 0: it has ended, and the others continue
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX holdfast_order_line ON holdfast_order (owner, key, seq) WHERE live = 1;
