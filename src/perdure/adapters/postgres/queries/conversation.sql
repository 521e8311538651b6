-- Counters of an address, open sessions and digests.

-- name: find_agent_state_locked
SELECT * FROM agent_states WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
FOR NO KEY UPDATE;

-- name: count_turns
SELECT coalesce(sum(turns), 0)::bigint FROM agent_states WHERE space = :space AND user_id = :user_id;

-- name: list_digests
SELECT * FROM digests
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND (:session_number::bigint IS NULL OR session_number = :session_number::bigint)
  AND (:kind::text IS NULL OR kind = :kind::text)
ORDER BY session_number DESC, kind, version DESC LIMIT :limit;
