-- Messages, sessions and the pairing of tool calls.

-- name: find_messages
SELECT m.*, s.session
FROM messages AS m JOIN sessions AS s USING (space, user_id, agent, channel, session_number)
WHERE m.space = :space AND m.user_id = :user_id AND m.id IN (SELECT value FROM json_each(:ids));

-- name: find_calls
SELECT * FROM tool_calls
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND call_id IN (SELECT value FROM json_each(:ids))
ORDER BY session_number, call_id;
