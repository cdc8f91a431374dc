-- needs: 5
-- Lines that a dead letter holds are found without reading all lines. A program that does not know the column leaves it as it is: rows of jobs that are no longer
-- dead letters are left out when it is read, and a line that such a program leaves held is not found.
ALTER TABLE holdfast_order ADD COLUMN held INTEGER NOT NULL DEFAULT 0; -- a dead letter, which keeps the others waiting now
UPDATE holdfast_order SET held = 1 WHERE hold = 1 AND live = 1
   AND EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = holdfast_order.job AND f.state = 'failed' AND f.discarded_at IS NULL);
CREATE INDEX holdfast_order_held ON holdfast_order (job) WHERE held = 1;
