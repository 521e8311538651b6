-- Durable jobs. What a change means is decided in `domain.jobs`; these only find and put rows.

-- name: find_job
SELECT * FROM jobs WHERE space = ?1 AND user_id = ?2 AND kind = ?3 AND key = ?4;

-- name: job_waits
SELECT 1 FROM jobs
WHERE space = ?1 AND user_id = ?2 AND kind = ?3 AND key = ?4
  AND state = 'ready' AND repeat IS NULL AND (attempts > 0 OR due_at_us <= ?5);

-- name: insert_job
INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_job
INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET
    state = excluded.state, payload = excluded.payload, due_at_us = excluded.due_at_us, attempts = excluded.attempts,
    attempts_max = excluded.attempts_max, fence = excluded.fence, again = excluded.again, worker = excluded.worker,
    repeat = excluded.repeat, last_error = excluded.last_error, runs = excluded.runs, failures = excluded.failures,
    updated_at_us = excluded.updated_at_us;

-- name: count_open_jobs
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE space = ?1 AND user_id = ?2 AND due_at_us IS NOT NULL LIMIT ?3
);

-- name: list_jobs
SELECT * FROM jobs WHERE space = ?1 AND user_id = ?2 AND (?3 IS NULL OR state = ?4) ORDER BY kind, key LIMIT ?5;

-- name: remove_jobs
DELETE FROM jobs WHERE space = ?1 AND user_id = ?2 AND state = 'done' AND updated_at_us < ?3;

-- name: due_jobs
SELECT * FROM jobs
WHERE due_at_us <= ?1 AND kind IN (SELECT value FROM json_each(?2))
  AND (?3 IS NULL OR (space = ?4 AND user_id = ?5))
ORDER BY due_at_us, space, user_id, kind, key LIMIT ?6;

-- name: stranded_jobs
SELECT * FROM jobs
WHERE due_at_us > ?6 AND updated_at_us > ?1 AND kind IN (SELECT value FROM json_each(?2))
  AND (?3 IS NULL OR (space = ?4 AND user_id = ?5))
ORDER BY due_at_us, space, user_id, kind, key LIMIT ?7;

-- name: count_jobs
-- A job of the year 1970 was made by a migration or a restore, which know no time: it is due at once, and never late.
SELECT state, count(*), min(nullif(due_at_us, 0)), sum(CASE WHEN attempts > 0 THEN 1 ELSE 0 END) FROM jobs GROUP BY state;

-- name: list_dead
SELECT * FROM jobs WHERE state = 'dead' ORDER BY updated_at_us DESC, space, user_id, kind, key LIMIT ?1;

-- name: remove_done
DELETE FROM jobs WHERE state = 'done' AND updated_at_us < ?1;
