-- Decisions of the overseer, and what models were asked. The owner comes first.

-- name: find_decision
SELECT * FROM decisions WHERE space = %s AND user_id = %s AND id = %s;

-- name: last_decision
SELECT coalesce(max(number), 0) FROM decisions WHERE space = %s AND user_id = %s;

-- name: list_decisions
SELECT * FROM decisions
WHERE space = %s AND user_id = %s AND number <= %s AND (number < %s OR id < %s)
  AND (%s::text IS NULL OR kind = %s) AND (%s::text IS NULL OR (agent = %s AND channel = %s))
ORDER BY number DESC, id DESC LIMIT %s;

-- name: insert_decision
INSERT INTO decisions VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s);

-- name: bound_decisions
DELETE FROM decisions WHERE space = %s AND user_id = %s AND number <= %s;

-- name: remove_decisions
DELETE FROM decisions WHERE space = %s AND user_id = %s AND id = ANY(%s);

-- name: list_usage
SELECT * FROM usage WHERE space = %s AND user_id = %s ORDER BY purpose, outcome;

-- name: add_usage
INSERT INTO usage VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (space, user_id, purpose, outcome) DO UPDATE SET
    calls = usage.calls + excluded.calls,
    tokens_in = usage.tokens_in + excluded.tokens_in,
    tokens_out = usage.tokens_out + excluded.tokens_out,
    took_us = usage.took_us + excluded.took_us,
    last_at_us = greatest(usage.last_at_us, excluded.last_at_us);

-- name: total_usage
SELECT '', '', purpose, outcome, sum(calls)::bigint, sum(tokens_in)::bigint, sum(tokens_out)::bigint, sum(took_us)::bigint,
    max(last_at_us)
FROM usage
GROUP BY purpose, outcome ORDER BY purpose, outcome;
