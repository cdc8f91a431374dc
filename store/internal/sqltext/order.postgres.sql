-- name: inspect_line
-- The first job of the line in which a job waits.
SELECT a.job FROM holdfast_order o JOIN holdfast_order a ON a.owner = o.owner AND a.key = o.key AND a.live AND a.seq < o.seq
 WHERE o.job = $1 AND o.live ORDER BY a.seq LIMIT 1
