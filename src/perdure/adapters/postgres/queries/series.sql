-- Time series: entries by id and by time, the ledger of windows, leases of fetches under way.

-- name: find_series
SELECT * FROM series WHERE space = %s AND user_id = %s AND series = %s;

-- name: find_series_locked
SELECT * FROM series WHERE space = %s AND user_id = %s AND series = %s FOR NO KEY UPDATE;

-- name: list_series
SELECT * FROM series WHERE space = %s AND user_id = %s AND series > %s ORDER BY series LIMIT %s;

-- name: insert_series
INSERT INTO series VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: update_series
UPDATE series SET spec = %s, last_updated_us = %s, entries = %s, api_calls = %s, fetched = %s, duplicates = %s,
    removed = %s, trims = %s, floor_us = %s, incarnation = %s, last_request = %s, last_result = %s
WHERE space = %s AND user_id = %s AND series = %s;

-- name: entries_descending
SELECT * FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND at_us >= %s AND at_us <= %s AND (at_us, id) < (%s, %s)
ORDER BY at_us DESC, id DESC LIMIT %s;

-- name: entries_ascending
SELECT * FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND at_us >= %s AND at_us <= %s AND (at_us, id) > (%s, %s)
ORDER BY at_us, id LIMIT %s;

-- name: entries_descending_first_seen
SELECT * FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND first_seen_us >= %s AND first_seen_us <= %s
  AND (first_seen_us, id) < (%s, %s)
ORDER BY first_seen_us DESC, id DESC LIMIT %s;

-- name: entries_ascending_first_seen
SELECT * FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND first_seen_us >= %s AND first_seen_us <= %s
  AND (first_seen_us, id) > (%s, %s)
ORDER BY first_seen_us, id LIMIT %s;

-- name: find_entries
SELECT * FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND id = ANY(%s);

-- name: count_entries
SELECT count(*) FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND at_us >= %s AND at_us <= %s;

-- name: count_entries_first_seen
SELECT count(*) FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND first_seen_us >= %s AND first_seen_us <= %s;

-- name: oldest_entry
SELECT at_us FROM series_entries WHERE space = %s AND user_id = %s AND series = %s ORDER BY at_us, id LIMIT 1;

-- name: newest_entry
SELECT at_us FROM series_entries WHERE space = %s AND user_id = %s AND series = %s ORDER BY at_us DESC, id DESC LIMIT 1;

-- name: entry_instants
SELECT at_us, id FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND at_us >= %s AND at_us <= %s AND (at_us, id) > (%s, %s)
ORDER BY at_us, id LIMIT %s;

-- name: put_entry
INSERT INTO series_entries VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, series, id) DO UPDATE SET
    at_us = excluded.at_us, body = excluded.body, last_seen_us = excluded.last_seen_us;

-- name: insert_past
WITH given (space, user_id, series, id, at_us, body, seen_us) AS (
    VALUES (%s::text, %s::text, %s::text, %s::text, %s::bigint, %s::text, %s::bigint)
)
INSERT INTO series_past
SELECT g.space, g.user_id, g.series, g.id,
       1 + coalesce((SELECT max(p.version) FROM series_past AS p
                     WHERE p.space = g.space AND p.user_id = g.user_id AND p.series = g.series AND p.id = g.id), 0),
       g.at_us, g.body, g.seen_us
FROM given AS g
WHERE NOT EXISTS (
    SELECT 1 FROM series_past AS p
    WHERE p.space = g.space AND p.user_id = g.user_id AND p.series = g.series AND p.id = g.id
      AND p.at_us = g.at_us AND p.body = g.body
);

-- name: list_past
SELECT * FROM series_past WHERE space = %s AND user_id = %s AND series = %s AND id = %s ORDER BY version DESC LIMIT %s;

-- name: remove_past_before
DELETE FROM series_past WHERE space = %s AND user_id = %s AND series = %s AND id IN (
    SELECT id FROM series_entries WHERE space = %s AND user_id = %s AND series = %s AND at_us < %s
);

-- name: remove_entries_before
DELETE FROM series_entries WHERE space = %s AND user_id = %s AND series = %s AND at_us < %s;

-- name: remove_past_of
DELETE FROM series_past
WHERE space = %s AND user_id = %s AND series = %s AND id = ANY(%s);

-- name: remove_entries_of
DELETE FROM series_entries
WHERE space = %s AND user_id = %s AND series = %s AND id = ANY(%s);

-- name: windows_touching
SELECT * FROM series_windows
WHERE space = %s AND user_id = %s AND series = %s AND start_us <= %s
  AND start_us >= coalesce((
      SELECT start_us FROM series_windows
      WHERE space = %s AND user_id = %s AND series = %s AND start_us < %s ORDER BY start_us DESC LIMIT 1), %s)
ORDER BY start_us;

-- name: last_window
SELECT * FROM series_windows WHERE space = %s AND user_id = %s AND series = %s ORDER BY start_us DESC LIMIT 1;

-- name: remove_windows
DELETE FROM series_windows
WHERE space = %s AND user_id = %s AND series = %s AND start_us <= %s AND end_us >= %s;

-- name: insert_window
INSERT INTO series_windows VALUES (%s, %s, %s, %s, %s, %s);

-- name: list_leases
SELECT * FROM series_leases
WHERE space = %s AND user_id = %s AND series = %s AND start_us < %s AND end_us > %s AND until_us > %s
ORDER BY start_us, holder;

-- name: put_lease
INSERT INTO series_leases VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, series, holder, start_us) DO UPDATE SET
    end_us = excluded.end_us, until_us = excluded.until_us;

-- name: drop_leases
DELETE FROM series_leases WHERE space = %s AND user_id = %s AND series = %s AND (holder = %s OR until_us <= %s);

-- name: remove_series_past
DELETE FROM series_past WHERE space = %s AND user_id = %s AND series = %s;

-- name: remove_series_entries
DELETE FROM series_entries WHERE space = %s AND user_id = %s AND series = %s;

-- name: remove_series_windows
DELETE FROM series_windows WHERE space = %s AND user_id = %s AND series = %s;

-- name: remove_series_leases
DELETE FROM series_leases WHERE space = %s AND user_id = %s AND series = %s;

-- name: remove_series
DELETE FROM series WHERE space = %s AND user_id = %s AND series = %s;
