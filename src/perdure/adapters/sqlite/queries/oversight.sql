-- Decisions of the overseer, and what models were asked. The owner comes first.

-- name: find_decision
SELECT * FROM decisions WHERE space = ? AND user_id = ? AND id = ?;

-- name: last_decision
SELECT coalesce(max(number), 0) FROM decisions WHERE space = ? AND user_id = ?;

-- name: list_decisions
SELECT * FROM decisions
WHERE space = ? AND user_id = ? AND number <= ? AND (number < ? OR id < ?)
  AND (? IS NULL OR kind = ?) AND (? IS NULL OR (agent = ? AND channel = ?))
ORDER BY number DESC, id DESC LIMIT ?;

-- name: insert_decision
INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: bound_decisions
DELETE FROM decisions WHERE space = ? AND user_id = ? AND number <= ?;

-- name: remove_decisions
DELETE FROM decisions WHERE space = ? AND user_id = ? AND id IN (SELECT value FROM json_each(?));

-- name: list_usage
SELECT * FROM usage WHERE space = ? AND user_id = ? ORDER BY purpose, outcome;

-- name: add_usage
INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, user_id, purpose, outcome) DO UPDATE SET
    calls = usage.calls + excluded.calls,
    tokens_in = usage.tokens_in + excluded.tokens_in,
    tokens_out = usage.tokens_out + excluded.tokens_out,
    took_us = usage.took_us + excluded.took_us,
    last_at_us = max(usage.last_at_us, excluded.last_at_us);

-- name: total_usage
SELECT '', '', purpose, outcome, sum(calls), sum(tokens_in), sum(tokens_out), sum(took_us),
    max(last_at_us)
FROM usage
GROUP BY purpose, outcome ORDER BY purpose, outcome;
