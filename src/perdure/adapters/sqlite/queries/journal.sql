-- The journal, and the derived rows that are only written together with it.

-- name: next_operation
INSERT INTO owners VALUES (:space, :user_id, 1)
ON CONFLICT (space, user_id) DO UPDATE SET operations = operations + 1
RETURNING operations;
