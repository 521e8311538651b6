-- The journal, and the derived rows that are only written together with it.

-- name: insert_operation
INSERT INTO operations
VALUES (:space, :user_id, :seq, :at_us, :actor, :action, :kind, :key, :before, :after, :why, :batch);

-- name: list_operations
SELECT * FROM operations WHERE space = :space AND user_id = :user_id AND seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: operation_times
SELECT at_us FROM (
    SELECT at_us, seq FROM operations WHERE space = :space AND user_id = :user_id ORDER BY seq DESC LIMIT :limit
) AS newest WHERE at_us >= :since_us ORDER BY seq DESC;

-- name: find_tally
SELECT * FROM tallies
WHERE space = :space AND user_id = :user_id AND agent = :agent AND channel = :channel
  AND session_number = :session_number;

-- name: put_tally
INSERT INTO tallies VALUES (:space, :user_id, :agent, :channel, :session_number, :up_to_seq, :body, :operation)
ON CONFLICT (space, user_id, agent, channel, session_number) DO UPDATE SET
    up_to_seq = excluded.up_to_seq, body = excluded.body, operation = excluded.operation;

-- name: find_operation
SELECT * FROM operations WHERE space = :space AND user_id = :user_id AND seq = :seq;

-- name: operations_of
SELECT * FROM operations
WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key ORDER BY seq DESC LIMIT :limit;

-- name: operations_in
SELECT * FROM operations WHERE space = :space AND user_id = :user_id AND batch = :batch ORDER BY seq;

-- name: blank_operations
UPDATE operations SET key = :name, before = NULL, after = NULL, why = 'forgotten'
WHERE space = :space AND user_id = :user_id AND kind = :kind AND key = :key;

-- name: make_owner
INSERT INTO owners VALUES (:space, :user_id, 0) ON CONFLICT (space, user_id) DO NOTHING;

-- name: find_owner
SELECT operations FROM owners WHERE space = :space AND user_id = :user_id;

-- name: count_operations
UPDATE owners SET operations = :operations WHERE space = :space AND user_id = :user_id;
