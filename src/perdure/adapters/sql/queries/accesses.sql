-- The access log.

-- name: owner_version
SELECT
    (SELECT coalesce(max(revision), 0) FROM state_keys WHERE space = :space AND user_id = :user_id AND key = :key),
    (SELECT coalesce(max(incarnation), '') FROM index_heads WHERE space = :space AND user_id = :user_id);

-- name: find_access
SELECT * FROM accesses WHERE space = :space AND user_id = :user_id AND id = :id;

-- name: last_access
SELECT coalesce(max(number), 0) FROM accesses WHERE space = :space AND user_id = :user_id;

-- name: list_accesses
SELECT * FROM accesses
WHERE space = :space AND user_id = :user_id AND number <= :top AND (number < :top OR id < :last_id)
ORDER BY number DESC, id DESC LIMIT :limit;

-- name: insert_access
INSERT INTO accesses
VALUES (:space, :user_id, :id, :number, :at_us, :agent, :channel, :actor, :face, :call, :action, :outcome, :error,
    :touched, :operations);

-- name: bound_accesses
DELETE FROM accesses WHERE space = :space AND user_id = :user_id AND number <= :last;
