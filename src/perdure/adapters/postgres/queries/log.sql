-- Messages, sessions and the pairing of tool calls.
-- A query whose name ends in `_locked` keeps other writers off the row until the transaction ends; NO KEY UPDATE leaves
-- room for the foreign keys of derived rows.

-- name: find_messages
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = :space AND m.user_id = :user_id AND m.id = ANY(:ids);

-- name: latest_session_locked
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
ORDER BY session_number DESC LIMIT 1 FOR NO KEY UPDATE;

-- name: find_session_locked
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel AND session = :session
FOR NO KEY UPDATE;

-- name: find_session_number_locked
SELECT * FROM sessions
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number
FOR NO KEY UPDATE;

-- name: find_calls
SELECT * FROM tool_calls
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel AND call_id = ANY(:ids)
ORDER BY session_number, call_id;
