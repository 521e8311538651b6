-- Durable jobs. What a change means is decided in `domain.jobs`; these only find and put rows.

-- name: find_job
SELECT * FROM jobs WHERE space = %s AND user_id = %s AND kind = %s AND key = %s;

-- name: find_job_locked
SELECT * FROM jobs WHERE space = %s AND user_id = %s AND kind = %s AND key = %s FOR UPDATE;

-- name: job_waits
-- The lock keeps workers from claiming the job before the cause that is being written can be seen.
SELECT 1 FROM jobs
WHERE space = %s AND user_id = %s AND kind = %s AND key = %s
  AND state = 'ready' AND repeat IS NULL AND (attempts > 0 OR due_at_us <= %s)
FOR UPDATE;

-- name: insert_job
INSERT INTO jobs VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: put_job
INSERT INTO jobs VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET
    state = excluded.state, payload = excluded.payload, due_at_us = excluded.due_at_us, attempts = excluded.attempts,
    attempts_max = excluded.attempts_max, fence = excluded.fence, again = excluded.again, worker = excluded.worker,
    repeat = excluded.repeat, last_error = excluded.last_error, runs = excluded.runs, failures = excluded.failures,
    updated_at_us = excluded.updated_at_us;

-- name: count_open_jobs
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE space = %s AND user_id = %s AND due_at_us IS NOT NULL LIMIT %s
) AS open_jobs;

-- name: list_jobs
SELECT * FROM jobs
WHERE space = %s AND user_id = %s AND (%s::text IS NULL OR state = %s) ORDER BY kind, key LIMIT %s;

-- name: remove_jobs
DELETE FROM jobs WHERE space = %s AND user_id = %s AND state = 'done' AND updated_at_us < %s;

-- name: due_jobs
SELECT * FROM jobs
WHERE due_at_us <= %s AND kind = ANY(%s)
  AND (%s::text IS NULL OR (space = %s AND user_id = %s))
ORDER BY due_at_us, space, user_id, kind, key LIMIT %s
FOR UPDATE SKIP LOCKED;

-- name: stranded_jobs
SELECT * FROM jobs
WHERE updated_at_us > %s AND kind = ANY(%s)
  AND (%s::text IS NULL OR (space = %s AND user_id = %s))
  AND due_at_us > %s
ORDER BY due_at_us, space, user_id, kind, key LIMIT %s
FOR UPDATE SKIP LOCKED;

-- name: count_jobs
-- A job of the year 1970 was made by a migration or a restore, which know no time: it is due at once, and never late.
SELECT state, count(*), min(nullif(due_at_us, 0)), sum(CASE WHEN attempts > 0 THEN 1 ELSE 0 END) FROM jobs GROUP BY state;

-- name: list_dead
SELECT * FROM jobs WHERE state = 'dead' ORDER BY updated_at_us DESC, space, user_id, kind, key LIMIT %s;

-- name: remove_done
DELETE FROM jobs WHERE state = 'done' AND updated_at_us < %s;
