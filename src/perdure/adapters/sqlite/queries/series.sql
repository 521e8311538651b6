-- Time series: entries by id and by time, the ledger of windows, leases of fetches under way.

-- name: find_series
SELECT * FROM series WHERE space = ?1 AND user_id = ?2 AND series = ?3;

-- name: list_series
SELECT * FROM series WHERE space = ?1 AND user_id = ?2 AND series > ?3 ORDER BY series LIMIT ?4;

-- name: insert_series
INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_series
UPDATE series SET spec = ?, last_updated_us = ?, entries = ?, api_calls = ?, fetched = ?, duplicates = ?,
    removed = ?, trims = ?, floor_us = ?, incarnation = ?, last_request = ?, last_result = ?
WHERE space = ? AND user_id = ? AND series = ?;

-- name: entries_descending
SELECT * FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND at_us >= ?4 AND at_us <= ?5 AND (at_us, id) < (?6, ?7)
ORDER BY at_us DESC, id DESC LIMIT ?8;

-- name: entries_ascending
SELECT * FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND at_us >= ?4 AND at_us <= ?5 AND (at_us, id) > (?6, ?7)
ORDER BY at_us, id LIMIT ?8;

-- name: entries_descending_first_seen
SELECT * FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND first_seen_us >= ?4 AND first_seen_us <= ?5
  AND (first_seen_us, id) < (?6, ?7)
ORDER BY first_seen_us DESC, id DESC LIMIT ?8;

-- name: entries_ascending_first_seen
SELECT * FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND first_seen_us >= ?4 AND first_seen_us <= ?5
  AND (first_seen_us, id) > (?6, ?7)
ORDER BY first_seen_us, id LIMIT ?8;

-- name: find_entries
SELECT * FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND id IN (SELECT value FROM json_each(?4));

-- name: count_entries
SELECT count(*) FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND at_us >= ?4 AND at_us <= ?5;

-- name: count_entries_first_seen
SELECT count(*) FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND first_seen_us >= ?4 AND first_seen_us <= ?5;

-- name: oldest_entry
SELECT at_us FROM series_entries WHERE space = ?1 AND user_id = ?2 AND series = ?3 ORDER BY at_us, id LIMIT 1;

-- name: newest_entry
SELECT at_us FROM series_entries WHERE space = ?1 AND user_id = ?2 AND series = ?3 ORDER BY at_us DESC, id DESC LIMIT 1;

-- name: entry_instants
SELECT at_us, id FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND at_us >= ?4 AND at_us <= ?5 AND (at_us, id) > (?6, ?7)
ORDER BY at_us, id LIMIT ?8;

-- name: put_entry
INSERT INTO series_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, user_id, series, id) DO UPDATE SET
    at_us = excluded.at_us, body = excluded.body, last_seen_us = excluded.last_seen_us;

-- name: insert_past
INSERT INTO series_past
SELECT ?1, ?2, ?3, ?4,
       1 + coalesce((SELECT max(version) FROM series_past WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND id = ?4), 0),
       ?5, ?6, ?7
WHERE NOT EXISTS (
    SELECT 1 FROM series_past
    WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND id = ?4 AND at_us = ?5 AND body = ?6
);

-- name: list_past
SELECT * FROM series_past WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND id = ?4 ORDER BY version DESC LIMIT ?5;

-- name: remove_past_before
DELETE FROM series_past WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND id IN (
    SELECT id FROM series_entries WHERE space = ?4 AND user_id = ?5 AND series = ?6 AND at_us < ?7
);

-- name: remove_entries_before
DELETE FROM series_entries WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND at_us < ?4;

-- name: remove_past_of
DELETE FROM series_past
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND id IN (SELECT value FROM json_each(?4));

-- name: remove_entries_of
DELETE FROM series_entries
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND id IN (SELECT value FROM json_each(?4));

-- name: windows_touching
SELECT * FROM series_windows
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND start_us <= ?4
  AND start_us >= coalesce((
      SELECT start_us FROM series_windows
      WHERE space = ?5 AND user_id = ?6 AND series = ?7 AND start_us < ?8 ORDER BY start_us DESC LIMIT 1), ?9)
ORDER BY start_us;

-- name: last_window
SELECT * FROM series_windows WHERE space = ?1 AND user_id = ?2 AND series = ?3 ORDER BY start_us DESC LIMIT 1;

-- name: remove_windows
DELETE FROM series_windows
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND start_us <= ?4 AND end_us >= ?5;

-- name: insert_window
INSERT INTO series_windows VALUES (?, ?, ?, ?, ?, ?);

-- name: list_leases
SELECT * FROM series_leases
WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND start_us < ?4 AND end_us > ?5 AND until_us > ?6
ORDER BY start_us, holder;

-- name: put_lease
INSERT INTO series_leases VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, user_id, series, holder, start_us) DO UPDATE SET
    end_us = excluded.end_us, until_us = excluded.until_us;

-- name: drop_leases
DELETE FROM series_leases WHERE space = ?1 AND user_id = ?2 AND series = ?3 AND (holder = ?4 OR until_us <= ?5);

-- name: remove_series_past
DELETE FROM series_past WHERE space = ?1 AND user_id = ?2 AND series = ?3;

-- name: remove_series_entries
DELETE FROM series_entries WHERE space = ?1 AND user_id = ?2 AND series = ?3;

-- name: remove_series_windows
DELETE FROM series_windows WHERE space = ?1 AND user_id = ?2 AND series = ?3;

-- name: remove_series_leases
DELETE FROM series_leases WHERE space = ?1 AND user_id = ?2 AND series = ?3;

-- name: remove_series
DELETE FROM series WHERE space = ?1 AND user_id = ?2 AND series = ?3;
