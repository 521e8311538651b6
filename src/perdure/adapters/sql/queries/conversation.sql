-- Counters of an address, open sessions and digests.

-- name: find_agent_state
SELECT * FROM agent_states WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel;

-- name: open_sessions
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel AND ended_at_us IS NULL
ORDER BY session_number DESC LIMIT :limit;

-- name: sessions_to_condense
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND messages > spine_seq
ORDER BY agent, channel, session_number LIMIT :limit;

-- name: insert_agent_state
INSERT INTO agent_states (space, user_id, agent, channel, turns, casual)
VALUES (:space, :user_id, :agent, :channel, 0, 0)
ON CONFLICT (space, user_id, agent, channel) DO NOTHING;

-- name: count_turn
INSERT INTO agent_states (space, user_id, agent, channel, turns, last_at_us, last_text, casual)
VALUES (:space, :user_id, :agent, :channel, :turns, :last_at_us, :last_text, 0)
ON CONFLICT (space, user_id, agent, channel) DO UPDATE SET
    turns = agent_states.turns + excluded.turns,
    last_text = CASE WHEN agent_states.last_at_us > excluded.last_at_us
        THEN agent_states.last_text ELSE excluded.last_text END,
    last_at_us = CASE WHEN agent_states.last_at_us > excluded.last_at_us
        THEN agent_states.last_at_us ELSE excluded.last_at_us END;

-- name: configure_agent
UPDATE agent_states SET profile = :profile, casual = :casual, private = :private, shared = :shared
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel;

-- name: note_rolling
UPDATE agent_states SET rolling_tried_us = :rolling_tried_us,
    rolling_done_us = coalesce(:rolling_done_us, rolling_done_us), rolling_error = :rolling_error
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel;

-- name: note_curated
UPDATE agent_states SET curated_us = :curated_us, curated_memories = :curated_memories
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel;

-- name: put_turn
UPDATE agent_states SET turn_holder = :turn_holder, turn_until_us = :turn_until_us
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel;

-- name: find_digest
SELECT * FROM digests
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND kind = :kind AND version = :version;

-- name: latest_digest
SELECT * FROM digests
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND kind = :kind AND undone = 0
ORDER BY version DESC LIMIT 1;

-- name: insert_digest
INSERT INTO digests
VALUES (:space, :user_id, :agent, :channel, :session_number, :kind, :version, :made_at_us, :undone, :body,
    :operation);

-- name: mark_digest
UPDATE digests SET undone = :undone, operation = :operation
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND kind = :kind AND version = :version;

-- name: remove_digest
DELETE FROM digests
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND kind = :kind AND version = :version;

-- name: remove_last_results
UPDATE tool_calls SET result_seq = NULL, failed = 0
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND result_seq > :last_seq;

-- name: remove_last_calls
DELETE FROM tool_calls
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND call_seq > :last_seq;

-- name: remove_session_tally
DELETE FROM tallies
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number;

-- name: remove_last_messages
DELETE FROM messages
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND seq > :last_seq;

-- name: sessions_by_activity
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND substr(channel, 1, :prefix_length) = :prefix AND deleted_at_us IS NULL
ORDER BY last_at_us DESC, agent, channel, session_number DESC LIMIT :limit;

-- name: forget_said
UPDATE agent_states SET last_text = NULL
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel;
