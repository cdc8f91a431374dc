-- needs: 5
-- Lines that a dead letter holds are found without reading all lines. A program that does not know the column leaves it as it is: rows of jobs that are no longer
-- dead letters are left out when it is read, and a line that such a program leaves held is not found.
ALTER TABLE holdfast_order ADD COLUMN held boolean NOT NULL DEFAULT false; -- a dead letter, which keeps the others waiting now
UPDATE holdfast_order o SET held = true FROM holdfast_finished f WHERE f.job = o.job AND o.hold AND o.live AND f.state = 'failed' AND f.discarded_at IS NULL;
CREATE INDEX holdfast_order_held ON holdfast_order (job) WHERE held;
