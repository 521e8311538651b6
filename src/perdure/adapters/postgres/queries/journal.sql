-- The journal, and the derived rows that are only written together with it.

-- name: next_operation
INSERT INTO owners VALUES (%s, %s, 1)
ON CONFLICT (space, user_id) DO UPDATE SET operations = owners.operations + 1
RETURNING operations;

-- name: insert_operation
INSERT INTO operations VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: list_operations
SELECT * FROM operations WHERE space = %s AND user_id = %s AND seq < %s ORDER BY seq DESC LIMIT %s;

-- name: find_tally
SELECT * FROM tallies WHERE space = %s AND user_id = %s AND agent = %s AND channel = %s AND session_number = %s;

-- name: put_tally
INSERT INTO tallies VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, agent, channel, session_number) DO UPDATE SET
    up_to_seq = excluded.up_to_seq, body = excluded.body, operation = excluded.operation;
