-- The search index.

-- name: find_index_entries
SELECT ref, number, replaces FROM index_entries
WHERE space = :space AND user_id = :user_id AND kind = :kind AND ref IN (SELECT value FROM json_each(:refs));

-- name: held_index_entries
SELECT ref, number, replaces, body FROM index_entries
WHERE space = :space AND user_id = :user_id AND kind = :kind AND ref IN (SELECT value FROM json_each(:refs));

-- name: renew_index_head
UPDATE index_heads SET incarnation = :incarnation, last = max(last, :highest),
    vectored = CASE WHEN vectored > max(last, :highest) THEN 0 ELSE vectored END
WHERE space = :space AND user_id = :user_id;

-- name: bury_index_entry
UPDATE index_entries SET kind = 'gone', ref = CAST(number AS TEXT), body = x''
WHERE space = :space AND user_id = :user_id AND number = :number;

-- name: put_index_vector
INSERT INTO index_vectors
SELECT space, user_id, :embedder, number, :body FROM index_entries
WHERE space = :space AND user_id = :user_id AND number = :number AND kind <> 'gone'
ON CONFLICT (space, user_id, embedder, number) DO UPDATE SET body = excluded.body;

-- name: seed_index_heads
INSERT INTO index_heads
SELECT space, user_id, lower(hex(randomblob(8))), 0, 0, '', 0, '', 0
FROM (
    SELECT space, user_id FROM sessions UNION SELECT space, user_id FROM records
    UNION SELECT space, user_id FROM state_keys UNION SELECT space, user_id FROM series
);
