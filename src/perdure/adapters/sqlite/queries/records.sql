-- What is known.

-- name: find_records
SELECT * FROM records
WHERE space = :space AND user_id = :user_id AND kind = :kind AND key IN (SELECT value FROM json_each(:keys))
ORDER BY key;

-- name: find_records_by
SELECT value, min(key) FROM record_terms
WHERE space = :space AND user_id = :user_id AND kind = :kind AND field = :field
  AND value IN (SELECT value FROM json_each(:values))
GROUP BY value;

-- name: list_records_of
SELECT t.value, r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = :space AND t.user_id = :user_id AND t.kind = :kind AND t.field = :field
  AND t.value IN (SELECT value FROM json_each(:values))
ORDER BY t.key DESC LIMIT :limit;

-- name: remove_terms
DELETE FROM record_terms
WHERE space = :space AND user_id = :user_id AND kind = :kind AND key IN (SELECT value FROM json_each(:keys));

-- name: find_echoes
SELECT hash FROM echoes
WHERE space = :space AND user_id = :user_id AND hash IN (SELECT value FROM json_each(:hashes)) AND at_us <= :until_us;

-- name: bound_echoes
DELETE FROM echoes WHERE space = :space AND user_id = :user_id AND hash IN (
    SELECT e.hash FROM echoes AS e
    WHERE e.space = :space AND e.user_id = :user_id ORDER BY e.at_us DESC, e.hash LIMIT -1 OFFSET :keep
);

-- name: tally_records
SELECT json_extract(body, '$.' || :one, '$.' || :two, '$.' || :three, '$.' || :four, '$.' || :five, '$.' || :six) AS found, count(*)
FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind
GROUP BY found;

-- name: tally_records_by
SELECT json_extract(r.body, '$.' || :one, '$.' || :two, '$.' || :three, '$.' || :four, '$.' || :five, '$.' || :six) AS found, count(*)
FROM record_terms AS t JOIN records AS r ON r.space = t.space AND r.user_id = t.user_id AND r.kind = t.kind AND r.key = t.key
WHERE t.space = :space AND t.user_id = :user_id AND t.kind = :kind AND t.field = :field AND t.value = :value
GROUP BY found;

-- name: tally_current_memories
SELECT json_extract(r.body, '$.' || :one, '$.' || :two, '$.' || :three, '$.' || :four, '$.' || :five, '$.' || :six) AS found, count(*)
FROM records AS r WHERE r.space = :space AND r.user_id = :user_id AND r.kind = 'memory' AND EXISTS (
    SELECT 1 FROM record_terms AS t
    WHERE t.space = :space AND t.user_id = :user_id AND t.kind = 'statement' AND t.field = 'current' AND t.value = r.key
)
GROUP BY found;

-- name: changed_memories
SELECT key, coalesce(json_extract(body, '$.updated_at'), json_extract(body, '$.created_at')) AS changed_us FROM records
WHERE space = :space AND user_id = :user_id AND kind = 'memory'
  AND (:archived = 1 OR coalesce(json_extract(body, '$.status'), 'ACTIVE') = 'ACTIVE')
  AND (:type IS NULL OR json_extract(body, '$.type') = :type)
  AND (:fact_type IS NULL OR json_extract(body, '$.fact_type') = :fact_type)
  AND coalesce(json_extract(body, '$.visible_to'), :agent) = :agent
ORDER BY changed_us DESC, key;
