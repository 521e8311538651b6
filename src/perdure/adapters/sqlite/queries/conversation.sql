-- Counters of an address, open sessions and digests. Parameters come in the order of their marks; the owner comes first where rows are read.

-- name: find_agent_state
SELECT * FROM agent_states WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?;

-- name: count_turns
SELECT coalesce(sum(turns), 0) FROM agent_states WHERE space = ? AND user_id = ?;

-- name: open_sessions
SELECT * FROM sessions
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND ended_at_us IS NULL
ORDER BY session_number DESC LIMIT ?;

-- name: sessions_to_condense
SELECT * FROM sessions
WHERE space = ? AND user_id = ? AND messages > spine_seq
ORDER BY agent, channel, session_number LIMIT ?;

-- name: insert_agent_state
INSERT INTO agent_states (space, user_id, agent, channel, turns, casual) VALUES (?, ?, ?, ?, 0, 0)
ON CONFLICT (space, user_id, agent, channel) DO NOTHING;

-- name: count_turn
INSERT INTO agent_states (space, user_id, agent, channel, turns, last_at_us, last_text, casual)
VALUES (?, ?, ?, ?, ?, ?, ?, 0)
ON CONFLICT (space, user_id, agent, channel) DO UPDATE SET
    turns = agent_states.turns + excluded.turns,
    last_text = CASE WHEN agent_states.last_at_us > excluded.last_at_us
        THEN agent_states.last_text ELSE excluded.last_text END,
    last_at_us = CASE WHEN agent_states.last_at_us > excluded.last_at_us
        THEN agent_states.last_at_us ELSE excluded.last_at_us END;

-- name: configure_agent
UPDATE agent_states SET profile = ?, casual = ?, private = ?, shared = ?
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?;

-- name: note_rolling
UPDATE agent_states SET rolling_tried_us = ?, rolling_done_us = coalesce(?, rolling_done_us), rolling_error = ?
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?;

-- name: note_curated
UPDATE agent_states SET curated_us = ?, curated_memories = ?
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?;

-- name: put_turn
UPDATE agent_states SET turn_holder = ?, turn_until_us = ?
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?;

-- name: find_digest
SELECT * FROM digests
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ? AND kind = ? AND version = ?;

-- name: latest_digest
SELECT * FROM digests
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ? AND kind = ? AND undone = 0
ORDER BY version DESC LIMIT 1;

-- name: list_digests
SELECT * FROM digests
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?
  AND (? IS NULL OR session_number = ?) AND (? IS NULL OR kind = ?)
ORDER BY session_number DESC, kind, version DESC LIMIT ?;

-- name: insert_digest
INSERT INTO digests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: mark_digest
UPDATE digests SET undone = ?, operation = ?
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ? AND kind = ? AND version = ?;

-- name: remove_digest
DELETE FROM digests
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ? AND kind = ? AND version = ?;

-- name: remove_session_calls
DELETE FROM tool_calls WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ?;

-- name: remove_session_tally
DELETE FROM tallies WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ?;

-- name: remove_session_messages
DELETE FROM messages WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ?;

-- name: sessions_by_activity
SELECT * FROM sessions
WHERE space = ? AND user_id = ? AND substr(channel, 1, ?) = ? AND deleted_at_us IS NULL
ORDER BY last_at_us DESC, agent, channel, session_number DESC LIMIT ?;

-- name: forget_said
UPDATE agent_states SET last_text = NULL
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?;
