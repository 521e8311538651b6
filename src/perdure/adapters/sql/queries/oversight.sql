-- Decisions of the overseer, and what models were asked.

-- name: find_decision
SELECT * FROM decisions WHERE space = :space AND user_id = :user_id AND id = :id;

-- name: last_decision
SELECT coalesce(max(number), 0) FROM decisions WHERE space = :space AND user_id = :user_id;

-- name: insert_decision
INSERT INTO decisions VALUES (:space, :user_id, :id, :number, :at_us, :agent, :channel, :kind, :body);

-- name: bound_decisions
DELETE FROM decisions WHERE space = :space AND user_id = :user_id AND number <= :last;

-- name: list_usage
SELECT * FROM usage WHERE space = :space AND user_id = :user_id ORDER BY purpose, outcome;
