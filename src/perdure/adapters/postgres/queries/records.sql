-- What is known. The owner comes first.

-- name: find_record
SELECT * FROM records WHERE space = %s AND user_id = %s AND kind = %s AND key = %s;

-- name: find_record_locked
SELECT * FROM records WHERE space = %s AND user_id = %s AND kind = %s AND key = %s FOR NO KEY UPDATE;

-- name: find_records
SELECT * FROM records WHERE space = %s AND user_id = %s AND kind = %s AND key = ANY(%s) ORDER BY key;

-- name: list_records
SELECT * FROM records WHERE space = %s AND user_id = %s AND kind = %s AND key < %s ORDER BY key DESC LIMIT %s;

-- name: list_records_all
SELECT * FROM records WHERE space = %s AND user_id = %s AND kind = %s ORDER BY key DESC LIMIT %s;

-- name: list_records_by
SELECT r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = %s AND t.user_id = %s AND t.kind = %s AND t.field = %s AND t.value = %s AND t.key < %s
ORDER BY t.key DESC LIMIT %s;

-- name: list_records_by_all
SELECT r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = %s AND t.user_id = %s AND t.kind = %s AND t.field = %s AND t.value = %s
ORDER BY t.key DESC LIMIT %s;

-- name: find_records_by
SELECT value, min(key) FROM record_terms
WHERE space = %s AND user_id = %s AND kind = %s AND field = %s AND value = ANY(%s) GROUP BY value;

-- name: count_records
SELECT count(*) FROM records WHERE space = %s AND user_id = %s AND kind = %s;

-- name: count_records_by
SELECT count(*) FROM record_terms WHERE space = %s AND user_id = %s AND kind = %s AND field = %s AND value = %s;

-- name: put_record
INSERT INTO records VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET body = excluded.body, operation = excluded.operation;

-- name: put_term
INSERT INTO record_terms VALUES (%s, %s, %s, %s, %s, %s);

-- name: remove_terms
DELETE FROM record_terms WHERE space = %s AND user_id = %s AND kind = %s AND key = %s;

-- name: remove_record
DELETE FROM records WHERE space = %s AND user_id = %s AND kind = %s AND key = %s;

-- name: find_echoes
SELECT hash FROM echoes WHERE space = %s AND user_id = %s AND hash = ANY(%s) AND at_us <= %s;

-- name: put_echo
INSERT INTO echoes VALUES (%s, %s, %s, %s)
ON CONFLICT (space, user_id, hash) DO UPDATE SET at_us = excluded.at_us;

-- name: bound_echoes
DELETE FROM echoes WHERE space = %s AND user_id = %s AND hash IN (
    SELECT e.hash FROM echoes AS e WHERE e.space = %s AND e.user_id = %s ORDER BY e.at_us DESC, e.hash LIMIT ALL OFFSET %s
);

-- name: remove_echoes
DELETE FROM echoes WHERE space = %s AND user_id = %s;
