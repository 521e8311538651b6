-- Time series: entries by id and by time, the ledger of windows, leases of fetches under way.

-- name: find_entries
SELECT * FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND id IN (SELECT value FROM json_each(:ids));

-- name: insert_past
INSERT INTO series_past
SELECT :space, :user_id, :series, :id,
       1 + coalesce((SELECT max(version) FROM series_past
                     WHERE space = :space AND user_id = :user_id AND series = :series AND id = :id), 0),
       :at_us, :body, :seen_us
WHERE NOT EXISTS (
    SELECT 1 FROM series_past
    WHERE space = :space AND user_id = :user_id AND series = :series AND id = :id AND at_us = :at_us AND body = :body
);

-- name: remove_past_of
DELETE FROM series_past
WHERE space = :space AND user_id = :user_id AND series = :series AND id IN (SELECT value FROM json_each(:ids));

-- name: remove_entries_of
DELETE FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND id IN (SELECT value FROM json_each(:ids));
