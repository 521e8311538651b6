-- What is known.

-- name: find_record_locked
SELECT * FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key FOR NO KEY UPDATE;

-- name: find_records
SELECT * FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = ANY(:keys) ORDER BY key;

-- name: find_records_by
SELECT value, min(key) FROM record_terms
WHERE space = :space AND user_id = :user_id AND kind = :kind AND field = :field AND value = ANY(:values)
GROUP BY value;

-- name: find_echoes
SELECT hash FROM echoes WHERE space = :space AND user_id = :user_id AND hash = ANY(:hashes) AND at_us <= :until_us;

-- name: bound_echoes
DELETE FROM echoes WHERE space = :space AND user_id = :user_id AND hash IN (
    SELECT e.hash FROM echoes AS e
    WHERE e.space = :space AND e.user_id = :user_id ORDER BY e.at_us DESC, e.hash LIMIT ALL OFFSET :keep
);
