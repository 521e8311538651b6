-- Time series: entries by id and by time, the ledger of windows, leases of fetches under way.

-- name: find_series
SELECT * FROM series WHERE space = :space AND user_id = :user_id AND series = :series;

-- name: list_series
SELECT * FROM series WHERE space = :space AND user_id = :user_id AND series > :after ORDER BY series LIMIT :limit;

-- name: insert_series
INSERT INTO series
VALUES (:space, :user_id, :series, :spec, :accumulated_since_us, :last_updated_us, :entries, :api_calls, :fetched,
    :duplicates, :removed, :trims, :floor_us, :incarnation, :last_request, :last_result);

-- name: update_series
UPDATE series SET spec = :spec, last_updated_us = :last_updated_us, entries = :entries, api_calls = :api_calls,
    fetched = :fetched, duplicates = :duplicates, removed = :removed, trims = :trims, floor_us = :floor_us,
    incarnation = :incarnation, last_request = :last_request, last_result = :last_result
WHERE space = :space AND user_id = :user_id AND series = :series;

-- name: entries_descending
SELECT * FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND at_us >= :start_us AND at_us <= :end_us
  AND (at_us, id) < (:edge_us, :edge_id)
ORDER BY at_us DESC, id DESC LIMIT :limit;

-- name: entries_ascending
SELECT * FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND at_us >= :start_us AND at_us <= :end_us
  AND (at_us, id) > (:edge_us, :edge_id)
ORDER BY at_us, id LIMIT :limit;

-- name: entries_descending_first_seen
SELECT * FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series
  AND first_seen_us >= :start_us AND first_seen_us <= :end_us AND (first_seen_us, id) < (:edge_us, :edge_id)
ORDER BY first_seen_us DESC, id DESC LIMIT :limit;

-- name: entries_ascending_first_seen
SELECT * FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series
  AND first_seen_us >= :start_us AND first_seen_us <= :end_us AND (first_seen_us, id) > (:edge_us, :edge_id)
ORDER BY first_seen_us, id LIMIT :limit;

-- name: count_entries
SELECT count(*) FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND at_us >= :start_us AND at_us <= :end_us;

-- name: count_entries_first_seen
SELECT count(*) FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series
  AND first_seen_us >= :start_us AND first_seen_us <= :end_us;

-- name: oldest_entry
SELECT at_us FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series ORDER BY at_us, id LIMIT 1;

-- name: newest_entry
SELECT at_us FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series ORDER BY at_us DESC, id DESC LIMIT 1;

-- name: entry_instants
SELECT at_us, id FROM series_entries
WHERE space = :space AND user_id = :user_id AND series = :series AND at_us >= :start_us AND at_us <= :end_us
  AND (at_us, id) > (:edge_us, :edge_id)
ORDER BY at_us, id LIMIT :limit;

-- name: put_entry
INSERT INTO series_entries VALUES (:space, :user_id, :series, :id, :at_us, :body, :first_seen_us, :last_seen_us)
ON CONFLICT (space, user_id, series, id) DO UPDATE SET
    at_us = excluded.at_us, body = excluded.body, last_seen_us = excluded.last_seen_us;

-- name: list_past
SELECT * FROM series_past
WHERE space = :space AND user_id = :user_id AND series = :series AND id = :id ORDER BY version DESC LIMIT :limit;

-- name: remove_past_before
DELETE FROM series_past WHERE space = :space AND user_id = :user_id AND series = :series AND id IN (
    SELECT id FROM series_entries
    WHERE space = :space AND user_id = :user_id AND series = :series AND at_us < :before_us
);

-- name: remove_entries_before
DELETE FROM series_entries WHERE space = :space AND user_id = :user_id AND series = :series AND at_us < :before_us;

-- name: windows_touching
SELECT * FROM series_windows
WHERE space = :space AND user_id = :user_id AND series = :series AND start_us <= :end_us
  AND start_us >= coalesce((
      SELECT start_us FROM series_windows
      WHERE space = :space AND user_id = :user_id AND series = :series AND start_us < :start_us
      ORDER BY start_us DESC LIMIT 1), :start_us)
ORDER BY start_us;

-- name: last_window
SELECT * FROM series_windows
WHERE space = :space AND user_id = :user_id AND series = :series ORDER BY start_us DESC LIMIT 1;

-- name: remove_windows
DELETE FROM series_windows
WHERE space = :space AND user_id = :user_id AND series = :series AND start_us <= :end_us AND end_us >= :start_us;

-- name: insert_window
INSERT INTO series_windows VALUES (:space, :user_id, :series, :start_us, :end_us, :fetched_us);

-- name: list_leases
SELECT * FROM series_leases
WHERE space = :space AND user_id = :user_id AND series = :series AND start_us < :end_us AND end_us > :start_us
  AND until_us > :now_us
ORDER BY start_us, holder;

-- name: put_lease
INSERT INTO series_leases VALUES (:space, :user_id, :series, :holder, :start_us, :end_us, :until_us)
ON CONFLICT (space, user_id, series, holder, start_us) DO UPDATE SET
    end_us = excluded.end_us, until_us = excluded.until_us;

-- name: drop_leases
DELETE FROM series_leases
WHERE space = :space AND user_id = :user_id AND series = :series AND (holder = :holder OR until_us <= :now_us);

-- name: remove_series_past
DELETE FROM series_past WHERE space = :space AND user_id = :user_id AND series = :series;

-- name: remove_series_entries
DELETE FROM series_entries WHERE space = :space AND user_id = :user_id AND series = :series;

-- name: remove_series_windows
DELETE FROM series_windows WHERE space = :space AND user_id = :user_id AND series = :series;

-- name: remove_series_leases
DELETE FROM series_leases WHERE space = :space AND user_id = :user_id AND series = :series;

-- name: remove_series
DELETE FROM series WHERE space = :space AND user_id = :user_id AND series = :series;
