-- What is known.

-- name: find_record_locked
SELECT * FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key FOR NO KEY UPDATE;

-- name: find_records
SELECT * FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = ANY(:keys) ORDER BY key;

-- name: find_records_by
SELECT value, min(key) FROM record_terms
WHERE space = :space AND user_id = :user_id AND kind = :kind AND field = :field AND value = ANY(:values)
GROUP BY value;

-- name: list_records_of
SELECT t.value, r.* FROM record_terms AS t JOIN records AS r USING (space, user_id, kind, key)
WHERE t.space = :space AND t.user_id = :user_id AND t.kind = :kind AND t.field = :field
  AND t.value = ANY(:values)
ORDER BY t.key DESC LIMIT :limit;

-- name: remove_terms
DELETE FROM record_terms
WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = ANY(:keys);

-- name: find_echoes
SELECT hash FROM echoes WHERE space = :space AND user_id = :user_id AND hash = ANY(:hashes) AND at_us <= :until_us;

-- name: bound_echoes
DELETE FROM echoes WHERE space = :space AND user_id = :user_id AND hash IN (
    SELECT e.hash FROM echoes AS e
    WHERE e.space = :space AND e.user_id = :user_id ORDER BY e.at_us DESC, e.hash LIMIT ALL OFFSET :keep
);

-- name: tally_records
SELECT json_build_array(body::json -> :one::text, body::json -> :two::text, body::json -> :three::text, body::json -> :four::text, body::json -> :five::text,
    body::json -> :six::text)::text AS found, count(*)
FROM records WHERE space = :space AND user_id = :user_id AND kind = :kind
GROUP BY found;

-- name: tally_records_by
SELECT json_build_array(r.body::json -> :one::text, r.body::json -> :two::text, r.body::json -> :three::text, r.body::json -> :four::text,
    r.body::json -> :five::text, r.body::json -> :six::text)::text AS found, count(*)
FROM record_terms AS t JOIN records AS r ON r.space = t.space AND r.user_id = t.user_id AND r.kind = t.kind AND r.key = t.key
WHERE t.space = :space AND t.user_id = :user_id AND t.kind = :kind AND t.field = :field AND t.value = :value
GROUP BY found;

-- name: tally_current_memories
SELECT json_build_array(r.body::json -> :one::text, r.body::json -> :two::text, r.body::json -> :three::text, r.body::json -> :four::text,
    r.body::json -> :five::text, r.body::json -> :six::text)::text AS found, count(*)
FROM records AS r WHERE r.space = :space AND r.user_id = :user_id AND r.kind = 'memory' AND EXISTS (
    SELECT 1 FROM record_terms AS t
    WHERE t.space = :space AND t.user_id = :user_id AND t.kind = 'statement' AND t.field = 'current' AND t.value = r.key
)
GROUP BY found;

-- name: changed_memories
SELECT key, coalesce(body::json ->> 'updated_at', body::json ->> 'created_at')::bigint AS changed_us FROM records
WHERE space = :space AND user_id = :user_id AND kind = 'memory'
  AND (:archived::int = 1 OR coalesce(body::json ->> 'status', 'ACTIVE') = 'ACTIVE')
  AND (:type::text IS NULL OR body::json ->> 'type' = :type::text)
  AND (:fact_type::text IS NULL OR body::json ->> 'fact_type' = :fact_type::text)
  AND coalesce(body::json ->> 'visible_to', :agent::text) = :agent::text
ORDER BY changed_us DESC, key;
