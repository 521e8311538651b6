-- The access log. The owner comes first.

-- name: find_access
SELECT * FROM accesses WHERE space = %s AND user_id = %s AND id = %s;

-- name: last_access
SELECT coalesce(max(number), 0) FROM accesses WHERE space = %s AND user_id = %s;

-- name: list_accesses
SELECT * FROM accesses
WHERE space = %s AND user_id = %s AND number <= %s AND (number < %s OR id < %s)
ORDER BY number DESC, id DESC LIMIT %s;

-- name: insert_access
INSERT INTO accesses VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: bound_accesses
DELETE FROM accesses WHERE space = %s AND user_id = %s AND number <= %s;
