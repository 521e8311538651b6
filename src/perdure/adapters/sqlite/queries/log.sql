-- Messages, sessions and the pairing of tool calls. Parameters 1 and 2 are always the owner.

-- name: find_message
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = ?1 AND m.user_id = ?2 AND m.id = ?3;

-- name: find_messages
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = ?1 AND m.user_id = ?2 AND m.id IN (SELECT value FROM json_each(?3));

-- name: messages_from_start
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = ?1 AND m.user_id = ?2 AND m.agent = ?3 AND m.channel = ?4
  AND (m.session_number, m.seq) > (?5, ?6) AND (m.session_number, m.seq) < (?7, ?8)
ORDER BY m.session_number, m.seq LIMIT ?9;

-- name: messages_from_end
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = ?1 AND m.user_id = ?2 AND m.agent = ?3 AND m.channel = ?4
  AND (m.session_number, m.seq) > (?5, ?6) AND (m.session_number, m.seq) < (?7, ?8)
ORDER BY m.session_number DESC, m.seq DESC LIMIT ?9;

-- name: insert_message
INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: latest_session
SELECT * FROM sessions
WHERE space = ?1 AND user_id = ?2 AND agent = ?3 AND channel = ?4
ORDER BY session_number DESC LIMIT 1;

-- name: find_session
SELECT * FROM sessions WHERE space = ?1 AND user_id = ?2 AND agent = ?3 AND channel = ?4 AND session = ?5;

-- name: find_session_number
SELECT * FROM sessions WHERE space = ?1 AND user_id = ?2 AND agent = ?3 AND channel = ?4 AND session_number = ?5;

-- name: list_sessions
SELECT * FROM sessions
WHERE space = ?1 AND user_id = ?2 AND agent = ?3 AND channel = ?4 AND session_number < ?5 AND deleted_at_us IS NULL
ORDER BY session_number DESC LIMIT ?6;

-- name: list_all_sessions
SELECT * FROM sessions
WHERE space = ?1 AND user_id = ?2 AND session_number < ?3 AND deleted_at_us IS NULL
ORDER BY session_number DESC, agent, channel LIMIT ?4;

-- name: update_session
UPDATE sessions SET last_at_us = ?, ended_at_us = ?, messages = ?, tokens = ?, turns = ?, boundary_seq = ?,
    spine_seq = ?, deleted_at_us = ?, learned_seq = ?
WHERE space = ? AND user_id = ? AND agent = ? AND channel = ? AND session_number = ? AND session = ?;

-- name: insert_session
INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_calls
SELECT * FROM tool_calls
WHERE space = ?1 AND user_id = ?2 AND agent = ?3 AND channel = ?4 AND call_id IN (SELECT value FROM json_each(?5))
ORDER BY session_number, call_id;

-- name: put_call
INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, user_id, agent, channel, call_id, session_number) DO UPDATE SET
    result_seq = excluded.result_seq, failed = excluded.failed;
