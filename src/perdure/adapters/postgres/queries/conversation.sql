-- Counters of an address, open sessions and digests. Parameters come in the order of their marks; the owner comes first where rows are read.

-- name: find_agent_state
SELECT * FROM agent_states WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s;

-- name: find_agent_state_locked
SELECT * FROM agent_states WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s
FOR NO KEY UPDATE;

-- name: count_turns
SELECT coalesce(sum(turns), 0)::bigint FROM agent_states WHERE space = %s AND user_id = %s;

-- name: open_sessions
SELECT * FROM sessions
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND ended_at_us IS NULL
ORDER BY session_number DESC LIMIT %s;

-- name: sessions_to_condense
SELECT * FROM sessions
WHERE space = %s AND user_id = %s AND messages > spine_seq
ORDER BY agent, channel, session_number LIMIT %s;

-- name: insert_agent_state
INSERT INTO agent_states (space, user_id, agent, channel, turns, casual) VALUES (%s, %s, %s, %s, 0, 0)
ON CONFLICT (space, user_id, agent, channel) DO NOTHING;

-- name: count_turn
INSERT INTO agent_states (space, user_id, agent, channel, turns, last_at_us, last_text, casual)
VALUES (%s, %s, %s, %s, %s, %s, %s, 0)
ON CONFLICT (space, user_id, agent, channel) DO UPDATE SET
    turns = agent_states.turns + excluded.turns,
    last_text = CASE WHEN agent_states.last_at_us > excluded.last_at_us
        THEN agent_states.last_text ELSE excluded.last_text END,
    last_at_us = CASE WHEN agent_states.last_at_us > excluded.last_at_us
        THEN agent_states.last_at_us ELSE excluded.last_at_us END;

-- name: configure_agent
UPDATE agent_states SET profile = %s, casual = %s, private = %s, shared = %s
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s;

-- name: note_rolling
UPDATE agent_states SET rolling_tried_us = %s, rolling_done_us = coalesce(%s, rolling_done_us), rolling_error = %s
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s;

-- name: note_curated
UPDATE agent_states SET curated_us = %s, curated_memories = %s
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s;

-- name: put_turn
UPDATE agent_states SET turn_holder = %s, turn_until_us = %s
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s;

-- name: find_digest
SELECT * FROM digests
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s AND kind = %s AND version = %s;

-- name: latest_digest
SELECT * FROM digests
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s AND kind = %s AND undone = 0
ORDER BY version DESC LIMIT 1;

-- name: list_digests
SELECT * FROM digests
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s
  AND (%s::bigint IS NULL OR session_number = %s::bigint) AND (%s::text IS NULL OR kind = %s::text)
ORDER BY session_number DESC, kind, version DESC LIMIT %s;

-- name: insert_digest
INSERT INTO digests VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: mark_digest
UPDATE digests SET undone = %s, operation = %s
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s AND kind = %s AND version = %s;

-- name: remove_digest
DELETE FROM digests
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s AND kind = %s AND version = %s;

-- name: remove_session_calls
DELETE FROM tool_calls WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s;

-- name: remove_session_tally
DELETE FROM tallies WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s;

-- name: remove_session_messages
DELETE FROM messages WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s;

-- name: sessions_by_activity
SELECT * FROM sessions
WHERE space = %s AND user_id = %s AND substr(channel, 1, %s) = %s AND deleted_at_us IS NULL
ORDER BY last_at_us DESC, agent, channel, session_number DESC LIMIT %s;

-- name: forget_said
UPDATE agent_states SET last_text = NULL
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s;
