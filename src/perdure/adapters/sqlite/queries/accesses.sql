-- The access log. The owner comes first.

-- name: find_access
SELECT * FROM accesses WHERE space = ? AND user_id = ? AND id = ?;

-- name: last_access
SELECT coalesce(max(number), 0) FROM accesses WHERE space = ? AND user_id = ?;

-- name: list_accesses
SELECT * FROM accesses
WHERE space = ? AND user_id = ? AND number <= ? AND (number < ? OR id < ?)
ORDER BY number DESC, id DESC LIMIT ?;

-- name: insert_access
INSERT INTO accesses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: bound_accesses
DELETE FROM accesses WHERE space = ? AND user_id = ? AND number <= ?;
