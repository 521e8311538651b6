-- The journal, and the derived rows that are only written together with it.

-- name: next_operation
INSERT INTO owners VALUES (%s, %s, 1)
ON CONFLICT (space, user_id) DO UPDATE SET operations = owners.operations + 1
RETURNING operations;

-- name: insert_operation
INSERT INTO operations VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: list_operations
SELECT * FROM operations WHERE space = %s AND user_id = %s AND seq < %s ORDER BY seq DESC LIMIT %s;

-- name: find_tally
SELECT * FROM tallies WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s;

-- name: put_tally
INSERT INTO tallies VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, agent, channel, session_number) DO UPDATE SET
    up_to_seq = excluded.up_to_seq, body = excluded.body, operation = excluded.operation;

-- name: find_operation
SELECT * FROM operations WHERE space = %s AND user_id = %s AND seq = %s;

-- name: operations_of
SELECT * FROM operations WHERE space = %s AND user_id = %s AND kind = %s AND key = %s ORDER BY seq DESC LIMIT %s;

-- name: operations_in
SELECT * FROM operations WHERE space = %s AND user_id = %s AND batch = %s ORDER BY seq;

-- name: blank_operations
UPDATE operations SET key = %s, before = NULL, after = NULL, why = 'forgotten'
WHERE space = %s AND user_id = %s AND kind = %s AND key = %s;

-- name: make_owner
INSERT INTO owners VALUES (%s, %s, 0) ON CONFLICT (space, user_id) DO NOTHING;

-- name: find_owner
SELECT operations FROM owners WHERE space = %s AND user_id = %s;

-- name: find_owner_locked
SELECT operations FROM owners WHERE space = %s AND user_id = %s FOR UPDATE;
