-- The journal, and the derived rows that are only written together with it.

-- name: next_operation
INSERT INTO owners VALUES (?1, ?2, 1)
ON CONFLICT (space, user_id) DO UPDATE SET operations = operations + 1
RETURNING operations;

-- name: insert_operation
INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: list_operations
SELECT * FROM operations WHERE space = ?1 AND user_id = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4;

-- name: find_tally
SELECT * FROM tallies WHERE space = ?1 AND user_id = ?2 AND agent = ?3 AND channel = ?4 AND session_number = ?5;

-- name: put_tally
INSERT INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, user_id, agent, channel, session_number) DO UPDATE SET
    up_to_seq = excluded.up_to_seq, body = excluded.body, operation = excluded.operation;

-- name: find_operation
SELECT * FROM operations WHERE space = ? AND user_id = ? AND seq = ?;

-- name: operations_of
SELECT * FROM operations WHERE space = ? AND user_id = ? AND kind = ? AND key = ? ORDER BY seq DESC LIMIT ?;

-- name: operations_in
SELECT * FROM operations WHERE space = ? AND user_id = ? AND batch = ? ORDER BY seq;

-- name: blank_operations
UPDATE operations SET key = ?, before = NULL, after = NULL, why = 'forgotten'
WHERE space = ? AND user_id = ? AND kind = ? AND key = ?;

-- name: make_owner
INSERT INTO owners VALUES (?, ?, 0) ON CONFLICT (space, user_id) DO NOTHING;

-- name: find_owner
SELECT operations FROM owners WHERE space = ? AND user_id = ?;
