-- Durable jobs. What a change means is decided in `domain.jobs`; these only find and put rows.

-- name: find_job_locked
-- The lock keeps workers from claiming the job before the cause that is being written can be seen.
SELECT * FROM jobs WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key FOR UPDATE;

-- name: count_open_jobs
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE space = :space AND user_id = :user_id AND due_at_us IS NOT NULL LIMIT :limit
) AS open_jobs;

-- name: list_jobs
SELECT * FROM jobs
WHERE space = :space AND user_id = :user_id AND (:state::text IS NULL OR state = :state)
ORDER BY kind, key LIMIT :limit;

-- name: waiting_jobs
SELECT * FROM jobs
WHERE space = :space AND user_id = :user_id AND due_at_us IS NOT NULL AND kind = ANY(:kinds)
ORDER BY due_at_us, kind, key LIMIT :limit;

-- name: due_jobs
-- Whose jobs are due. Without a lock: one over all users cannot be taken where they are on many servers.
SELECT * FROM jobs
WHERE due_at_us <= :now_us AND kind = ANY(:kinds)
  AND (:space::text IS NULL OR (space = :space AND user_id = :user_id))
ORDER BY due_at_us, space, user_id, kind, key LIMIT :limit;

-- name: due_jobs_locked
SELECT * FROM jobs
WHERE space = :space AND user_id = :user_id AND due_at_us <= :now_us AND kind = ANY(:kinds)
ORDER BY due_at_us, kind, key LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: stranded_jobs
SELECT * FROM jobs
WHERE updated_at_us > :now_us AND kind = ANY(:kinds)
  AND (:space::text IS NULL OR (space = :space AND user_id = :user_id))
  AND due_at_us > :stranded_us
ORDER BY due_at_us, space, user_id, kind, key LIMIT :limit;

-- name: stranded_jobs_locked
SELECT * FROM jobs
WHERE space = :space AND user_id = :user_id AND updated_at_us > :now_us AND kind = ANY(:kinds) AND due_at_us > :stranded_us
ORDER BY due_at_us, kind, key LIMIT :limit
FOR UPDATE SKIP LOCKED;
