-- Messages, sessions and the pairing of tool calls. The first two parameters are always the owner.
-- A query whose name ends in `_locked` keeps other writers off the row until the transaction ends; NO KEY UPDATE leaves
-- room for the foreign keys of derived rows.

-- name: find_message
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = %s AND m.user_id = %s AND m.id = %s;

-- name: find_messages
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = %s AND m.user_id = %s AND m.id = ANY(%s);

-- name: messages_from_start
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = %s AND m.user_id = %s AND m.agent = %s AND m.channel = %s
  AND (m.session_number, m.seq) > (%s, %s) AND (m.session_number, m.seq) < (%s, %s)
ORDER BY m.session_number, m.seq LIMIT %s;

-- name: messages_from_end
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = %s AND m.user_id = %s AND m.agent = %s AND m.channel = %s
  AND (m.session_number, m.seq) > (%s, %s) AND (m.session_number, m.seq) < (%s, %s)
ORDER BY m.session_number DESC, m.seq DESC LIMIT %s;

-- name: insert_message
INSERT INTO messages VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: latest_session
SELECT * FROM sessions
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s
ORDER BY session_number DESC LIMIT 1;

-- name: latest_session_locked
SELECT * FROM sessions
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s
ORDER BY session_number DESC LIMIT 1 FOR NO KEY UPDATE;

-- name: find_session
SELECT * FROM sessions WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session = %s;

-- name: find_session_locked
SELECT * FROM sessions WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session = %s
FOR NO KEY UPDATE;

-- name: find_session_number
SELECT * FROM sessions WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s;

-- name: find_session_number_locked
SELECT * FROM sessions WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s
FOR NO KEY UPDATE;

-- name: list_sessions
SELECT * FROM sessions
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number < %s AND deleted_at_us IS NULL
ORDER BY session_number DESC LIMIT %s;

-- name: list_all_sessions
SELECT * FROM sessions
WHERE space = %s AND user_id = %s AND session_number < %s AND deleted_at_us IS NULL
ORDER BY session_number DESC, agent, channel LIMIT %s;

-- name: update_session
UPDATE sessions SET last_at_us = %s, ended_at_us = %s, messages = %s, tokens = %s, turns = %s, boundary_seq = %s,
    spine_seq = %s, deleted_at_us = %s, learned_seq = %s
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s AND session = %s;

-- name: insert_session
INSERT INTO sessions VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: find_calls
SELECT * FROM tool_calls
WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND call_id = ANY(%s)
ORDER BY session_number, call_id;

-- name: put_call
INSERT INTO tool_calls VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, agent, channel, call_id, session_number) DO UPDATE SET
    result_seq = excluded.result_seq, failed = excluded.failed;
