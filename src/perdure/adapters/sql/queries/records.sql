-- What is known.

-- name: find_record
SELECT * FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key;

-- name: list_records
SELECT * FROM records
WHERE space = :space AND user_id = :user_id AND kind = :kind AND key < :before ORDER BY key DESC LIMIT :limit;

-- name: list_records_all
SELECT * FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind ORDER BY key DESC LIMIT :limit;

-- name: list_records_by
SELECT r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = :space AND t.user_id = :user_id AND t.kind = :kind AND t.field = :field AND t.value = :value
  AND t.key < :before
ORDER BY t.key DESC LIMIT :limit;

-- name: list_records_by_all
SELECT r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = :space AND t.user_id = :user_id AND t.kind = :kind AND t.field = :field AND t.value = :value
ORDER BY t.key DESC LIMIT :limit;

-- name: count_records
SELECT count(*) FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind;

-- name: count_records_by
SELECT count(*) FROM record_terms
WHERE space = :space AND user_id = :user_id AND kind = :kind AND field = :field AND value = :value;

-- name: put_record
INSERT INTO records VALUES (:space, :user_id, :kind, :key, :body, :operation)
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET body = excluded.body, operation = excluded.operation;

-- name: put_term
INSERT INTO record_terms VALUES (:space, :user_id, :kind, :field, :value, :key)
ON CONFLICT (space, user_id, kind, field, value, key) DO NOTHING;

-- name: remove_term
DELETE FROM record_terms
WHERE space = :space AND user_id = :user_id AND kind = :kind AND field = :field AND value = :value AND key = :key;

-- name: remove_record
DELETE FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key;

-- name: put_echo
INSERT INTO echoes VALUES (:space, :user_id, :hash, :at_us)
ON CONFLICT (space, user_id, hash) DO UPDATE SET at_us = excluded.at_us;

-- name: remove_echoes
DELETE FROM echoes WHERE space = :space AND user_id = :user_id;
