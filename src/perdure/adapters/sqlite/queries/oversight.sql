-- Decisions of the overseer, and what models were asked.

-- name: list_decisions
SELECT * FROM decisions
WHERE space = :space AND user_id = :user_id AND number <= :top AND (number < :top OR id < :last_id)
  AND (:kind IS NULL OR kind = :kind) AND (:agent IS NULL OR (agent = :agent AND channel = :channel))
ORDER BY number DESC, id DESC LIMIT :limit;

-- name: remove_decisions
DELETE FROM decisions WHERE space = :space AND user_id = :user_id AND id IN (SELECT value FROM json_each(:ids));

-- name: add_usage
INSERT INTO usage
VALUES (:space, :user_id, :purpose, :outcome, :calls, :tokens_in, :tokens_out, :took_us, :last_at_us)
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
