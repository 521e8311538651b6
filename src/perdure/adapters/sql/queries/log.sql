-- Messages, sessions and the pairing of tool calls.

-- name: find_message
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = :space AND m.user_id = :user_id AND m.id = :id;

-- name: messages_from_start
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = :space AND m.user_id = :user_id AND m.agent = :agent AND m.channel = :channel
  AND (m.session_number, m.seq) > (:low_session, :low_seq) AND (m.session_number, m.seq) < (:high_session, :high_seq)
ORDER BY m.session_number, m.seq LIMIT :limit;

-- name: messages_from_end
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = :space AND m.user_id = :user_id AND m.agent = :agent AND m.channel = :channel
  AND (m.session_number, m.seq) > (:low_session, :low_seq) AND (m.session_number, m.seq) < (:high_session, :high_seq)
ORDER BY m.session_number DESC, m.seq DESC LIMIT :limit;

-- name: insert_message
INSERT INTO messages
VALUES (:space, :user_id, :agent, :channel, :session_number, :seq, :id, :role, :content, :at_us, :tokens, :metadata,
    :tool_calls, :tool_call_id, :failed);

-- name: latest_session
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
ORDER BY session_number DESC LIMIT 1;

-- name: find_session
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel AND session = :session;

-- name: find_session_number
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number;

-- name: list_sessions
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel AND session_number < :before
  AND deleted_at_us IS NULL
ORDER BY session_number DESC LIMIT :limit;

-- name: list_all_sessions
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND session_number < :before AND deleted_at_us IS NULL
ORDER BY session_number DESC, agent, channel LIMIT :limit;

-- name: update_session
UPDATE sessions SET last_at_us = :last_at_us, ended_at_us = :ended_at_us, messages = :messages, tokens = :tokens,
    turns = :turns, boundary_seq = :boundary_seq, spine_seq = :spine_seq, deleted_at_us = :deleted_at_us,
    learned_seq = :learned_seq
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number AND session = :session;

-- name: insert_session
INSERT INTO sessions
VALUES (:space, :user_id, :agent, :channel, :session_number, :session, :opened_at_us, :last_at_us, :ended_at_us,
    :messages, :tokens, :turns, :boundary_seq, :spine_seq, :deleted_at_us, :learned_seq);

-- name: put_call
INSERT INTO tool_calls
VALUES (:space, :user_id, :agent, :channel, :call_id, :session_number, :name, :call_seq, :result_seq, :failed)
ON CONFLICT (space, user_id, agent, channel, call_id, session_number) DO UPDATE SET
    result_seq = excluded.result_seq, failed = excluded.failed;
