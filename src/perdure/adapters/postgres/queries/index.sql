-- The search index.

-- name: index_head_shared
SELECT * FROM index_heads WHERE space = :space AND user_id = :user_id FOR SHARE;

-- name: index_head_locked
SELECT * FROM index_heads WHERE space = :space AND user_id = :user_id FOR NO KEY UPDATE;

-- name: find_index_entries
SELECT ref, number, replaces FROM index_entries
WHERE space = :space AND user_id = :user_id AND kind = :kind AND ref = ANY(:refs);

-- name: held_index_entries
SELECT ref, number, replaces, body FROM index_entries
WHERE space = :space AND user_id = :user_id AND kind = :kind AND ref = ANY(:refs);

-- name: renew_index_head
UPDATE index_heads SET incarnation = :incarnation, last = greatest(last, :highest),
    vectored = CASE WHEN vectored > greatest(last, :highest) THEN 0 ELSE vectored END
WHERE space = :space AND user_id = :user_id;

-- name: bury_index_entry
UPDATE index_entries SET kind = 'gone', ref = number::text, body = ''::bytea
WHERE space = :space AND user_id = :user_id AND number = :number;

-- name: put_index_vector
INSERT INTO index_vectors
SELECT space, user_id, :embedder::text, number, :body::bytea FROM index_entries
WHERE space = :space AND user_id = :user_id AND number = :number AND kind <> 'gone'
ON CONFLICT (space, user_id, embedder, number) DO UPDATE SET body = excluded.body;

-- name: seed_index_heads
INSERT INTO index_heads
SELECT space, user_id, md5(random()::text), 0, 0, '', 0, '', 0
FROM (
    SELECT space, user_id FROM sessions UNION SELECT space, user_id FROM records
    UNION SELECT space, user_id FROM state_keys UNION SELECT space, user_id FROM series
) AS held;
