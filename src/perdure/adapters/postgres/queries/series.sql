-- Time series: entries by id and by time, the ledger of windows, leases of fetches under way.

-- name: find_series_locked
SELECT * FROM series WHERE space = :space AND user_id = :user_id AND series = :series FOR NO KEY UPDATE;

-- name: find_entries
SELECT * FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND id = ANY(:ids);

-- name: insert_past
-- From the entry that it is the past of: a statement over many servers takes rows from a table, not from a list.
INSERT INTO series_past
SELECT e.space, e.user_id, e.series, e.id,
       1 + coalesce((SELECT max(p.version) FROM series_past AS p
                     WHERE p.space = e.space AND p.user_id = e.user_id AND p.series = e.series AND p.id = e.id), 0),
       :at_us::bigint, :body::text, :seen_us::bigint
FROM series_entries AS e
WHERE e.space = :space AND e.user_id = :user_id AND e.series = :series AND e.id = :id AND NOT EXISTS (
    SELECT 1 FROM series_past AS p
    WHERE p.space = e.space AND p.user_id = e.user_id AND p.series = e.series AND p.id = e.id
      AND p.at_us = :at_us AND p.body = :body
);

-- name: remove_past_of
DELETE FROM series_past
WHERE space = :space AND user_id = :user_id AND series = :series AND id = ANY(:ids);

-- name: remove_entries_of
DELETE FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND id = ANY(:ids);
