-- Counters of an address, open sessions and digests.

-- name: count_turns
SELECT coalesce(sum(turns), 0) FROM agent_states WHERE space = :space AND user_id = :user_id;

-- name: list_digests
SELECT * FROM digests
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND (:session_number IS NULL OR session_number = :session_number) AND (:kind IS NULL OR kind = :kind)
ORDER BY session_number DESC, kind, version DESC LIMIT :limit;
