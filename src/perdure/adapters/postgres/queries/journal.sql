-- The journal, and the derived rows that are only written together with it.

-- name: next_operation
INSERT INTO owners VALUES (:space, :user_id, 1)
ON CONFLICT (space, user_id) DO UPDATE SET operations = owners.operations + 1
RETURNING operations;

-- name: find_owner_locked
SELECT operations FROM owners WHERE space = :space AND user_id = :user_id FOR UPDATE;
