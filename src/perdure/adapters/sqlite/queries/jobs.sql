-- Durable jobs. What a change means is decided in `domain.jobs`; these only find and put rows.

-- name: count_open_jobs
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE space = :space AND user_id = :user_id AND due_at_us IS NOT NULL LIMIT :limit
);

-- name: list_jobs
SELECT * FROM jobs
WHERE space = :space AND user_id = :user_id AND (:state IS NULL OR state = :state) ORDER BY kind, key LIMIT :limit;

-- name: waiting_jobs
SELECT * FROM jobs
WHERE space = :space AND user_id = :user_id AND due_at_us IS NOT NULL AND kind IN (SELECT value FROM json_each(:kinds))
ORDER BY due_at_us, kind, key LIMIT :limit;

-- name: due_jobs
SELECT * FROM jobs
WHERE due_at_us <= :now_us AND kind IN (SELECT value FROM json_each(:kinds))
  AND (:space IS NULL OR (space = :space AND user_id = :user_id))
ORDER BY due_at_us, space, user_id, kind, key LIMIT :limit;

-- name: stranded_jobs
SELECT * FROM jobs
WHERE due_at_us > :stranded_us AND updated_at_us > :now_us AND kind IN (SELECT value FROM json_each(:kinds))
  AND (:space IS NULL OR (space = :space AND user_id = :user_id))
ORDER BY due_at_us, space, user_id, kind, key LIMIT :limit;
