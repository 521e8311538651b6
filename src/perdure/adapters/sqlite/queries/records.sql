-- What is known. The owner comes first.

-- name: find_record
SELECT * FROM records WHERE space = ? AND user_id = ? AND kind = ? AND key = ?;

-- name: find_records
SELECT * FROM records WHERE space = ? AND user_id = ? AND kind = ? AND key IN (SELECT value FROM json_each(?)) ORDER BY key;

-- name: list_records
SELECT * FROM records WHERE space = ? AND user_id = ? AND kind = ? AND key < ? ORDER BY key DESC LIMIT ?;

-- name: list_records_all
SELECT * FROM records WHERE space = ? AND user_id = ? AND kind = ? ORDER BY key DESC LIMIT ?;

-- name: list_records_by
SELECT r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = ? AND t.user_id = ? AND t.kind = ? AND t.field = ? AND t.value = ? AND t.key < ?
ORDER BY t.key DESC LIMIT ?;

-- name: list_records_by_all
SELECT r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = ? AND t.user_id = ? AND t.kind = ? AND t.field = ? AND t.value = ?
ORDER BY t.key DESC LIMIT ?;

-- name: find_records_by
SELECT value, min(key) FROM record_terms
WHERE space = ? AND user_id = ? AND kind = ? AND field = ? AND value IN (SELECT value FROM json_each(?)) GROUP BY value;

-- name: count_records
SELECT count(*) FROM records WHERE space = ? AND user_id = ? AND kind = ?;

-- name: count_records_by
SELECT count(*) FROM record_terms WHERE space = ? AND user_id = ? AND kind = ? AND field = ? AND value = ?;

-- name: put_record
INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET body = excluded.body, operation = excluded.operation;

-- name: put_term
INSERT INTO record_terms VALUES (?, ?, ?, ?, ?, ?);

-- name: remove_terms
DELETE FROM record_terms WHERE space = ? AND user_id = ? AND kind = ? AND key = ?;

-- name: remove_record
DELETE FROM records WHERE space = ? AND user_id = ? AND kind = ? AND key = ?;

-- name: find_echoes
SELECT hash FROM echoes WHERE space = ? AND user_id = ? AND hash IN (SELECT value FROM json_each(?)) AND at_us <= ?;

-- name: put_echo
INSERT INTO echoes VALUES (?, ?, ?, ?)
ON CONFLICT (space, user_id, hash) DO UPDATE SET at_us = excluded.at_us;

-- name: bound_echoes
DELETE FROM echoes WHERE space = ? AND user_id = ? AND hash IN (
    SELECT e.hash FROM echoes AS e WHERE e.space = ? AND e.user_id = ? ORDER BY e.at_us DESC, e.hash LIMIT -1 OFFSET ?
);

-- name: remove_echoes
DELETE FROM echoes WHERE space = ? AND user_id = ?;
