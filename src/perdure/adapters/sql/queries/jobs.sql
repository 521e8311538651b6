-- Durable jobs. What a change means is decided in `domain.jobs`; these only find and put rows.

-- name: find_job
SELECT * FROM jobs WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key;

-- name: insert_job
INSERT INTO jobs
VALUES (:space, :user_id, :kind, :key, :state, :payload, :due_at_us, :attempts, :attempts_max, :fence, :again,
    :worker, :repeat, :last_error, :runs, :failures, :created_at_us, :updated_at_us);

-- name: put_job
INSERT INTO jobs
VALUES (:space, :user_id, :kind, :key, :state, :payload, :due_at_us, :attempts, :attempts_max, :fence, :again,
    :worker, :repeat, :last_error, :runs, :failures, :created_at_us, :updated_at_us)
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET
    state = excluded.state, payload = excluded.payload, due_at_us = excluded.due_at_us, attempts = excluded.attempts,
    attempts_max = excluded.attempts_max, fence = excluded.fence, again = excluded.again, worker = excluded.worker,
    repeat = excluded.repeat, last_error = excluded.last_error, runs = excluded.runs, failures = excluded.failures,
    updated_at_us = excluded.updated_at_us;

-- name: remove_jobs
DELETE FROM jobs WHERE space = :space AND user_id = :user_id AND state = 'done' AND updated_at_us < :before_us;

-- name: count_jobs
-- A job of the year 1970 was made by a migration or a restore, which know no time: it is due at once, and never late.
SELECT state, count(*), min(nullif(due_at_us, 0)), sum(CASE WHEN attempts > 0 THEN 1 ELSE 0 END) FROM jobs
GROUP BY state;

-- name: list_dead
SELECT * FROM jobs WHERE state = 'dead' ORDER BY updated_at_us DESC, space, user_id, kind, key LIMIT :limit;

-- name: remove_done
DELETE FROM jobs WHERE state = 'done' AND updated_at_us < :before_us;
