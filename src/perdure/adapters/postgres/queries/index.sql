-- The search index. The owner comes first.

-- name: index_head
SELECT * FROM index_heads WHERE space = %s AND user_id = %s;

-- name: index_head_shared
SELECT * FROM index_heads WHERE space = %s AND user_id = %s FOR SHARE;

-- name: index_head_locked
SELECT * FROM index_heads WHERE space = %s AND user_id = %s FOR NO KEY UPDATE;

-- name: advance_index
INSERT INTO index_heads VALUES (%s, %s, %s, %s, %s, '', 0, '', 0)
ON CONFLICT (space, user_id) DO UPDATE SET last = index_heads.last + excluded.last
RETURNING last;

-- name: put_index_head
UPDATE index_heads SET lexicon = %s, embedder = %s, vectored = %s, coming = %s, coming_upto = %s WHERE space = %s AND user_id = %s;

-- name: index_entries
SELECT * FROM index_entries WHERE space = %s AND user_id = %s AND number > %s AND number <= %s ORDER BY number LIMIT %s;

-- name: find_index_entries
SELECT ref, number, replaces FROM index_entries WHERE space = %s AND user_id = %s AND kind = %s AND ref = ANY(%s);

-- name: held_index_entries
SELECT ref, number, replaces, body FROM index_entries WHERE space = %s AND user_id = %s AND kind = %s AND ref = ANY(%s);

-- name: remove_gone_index_entries
DELETE FROM index_entries WHERE space = %s AND user_id = %s AND kind = 'gone';

-- name: unlink_index_entries
UPDATE index_entries SET replaces = 0 WHERE space = %s AND user_id = %s AND replaces <> 0;

-- name: remove_loose_index_vectors
DELETE FROM index_vectors WHERE space = %s AND user_id = %s AND NOT EXISTS (
    SELECT 1 FROM index_entries AS e
    WHERE e.space = index_vectors.space AND e.user_id = index_vectors.user_id AND e.number = index_vectors.number
);

-- name: highest_index_entry
SELECT max(number) FROM index_entries WHERE space = %s AND user_id = %s;

-- name: renew_index_head
UPDATE index_heads SET incarnation = %s, last = greatest(last, %s), vectored = CASE WHEN vectored > greatest(last, %s) THEN 0 ELSE vectored END
WHERE space = %s AND user_id = %s;

-- name: count_index_entries
SELECT count(*) FROM index_entries WHERE space = %s AND user_id = %s AND kind = %s;

-- name: insert_index_entry
INSERT INTO index_entries VALUES (%s, %s, %s, %s, %s, %s, %s);

-- name: remove_index_entry
DELETE FROM index_entries WHERE space = %s AND user_id = %s AND number = %s;

-- name: bury_index_entry
UPDATE index_entries SET kind = 'gone', ref = number::text, body = ''::bytea WHERE space = %s AND user_id = %s AND number = %s;

-- name: index_entry_replaces
SELECT replaces FROM index_entries WHERE space = %s AND user_id = %s AND number = %s;

-- name: index_vectors
SELECT number, body FROM index_vectors
WHERE space = %s AND user_id = %s AND embedder = %s AND number > %s AND number <= %s ORDER BY number;

-- name: put_index_vector
INSERT INTO index_vectors
SELECT space, user_id, %s::text, number, %s::bytea FROM index_entries
WHERE space = %s AND user_id = %s AND number = %s AND kind <> 'gone'
ON CONFLICT (space, user_id, embedder, number) DO UPDATE SET body = excluded.body;

-- name: remove_index_vector
DELETE FROM index_vectors WHERE space = %s AND user_id = %s AND number = %s;

-- name: remove_index_vectors
DELETE FROM index_vectors WHERE space = %s AND user_id = %s AND embedder = %s;

-- name: index_packs
SELECT * FROM index_packs WHERE space = %s AND user_id = %s ORDER BY first;

-- name: index_pack_spans
SELECT first, last FROM index_packs WHERE space = %s AND user_id = %s ORDER BY first;

-- name: insert_index_pack
INSERT INTO index_packs VALUES (%s, %s, %s, %s, %s, %s);

-- name: remove_index_packs_within
DELETE FROM index_packs WHERE space = %s AND user_id = %s AND first <= %s AND last >= %s;

-- name: remove_index_packs
DELETE FROM index_packs WHERE space = %s AND user_id = %s;

-- name: seed_index_heads
INSERT INTO index_heads
SELECT space, user_id, md5(random()::text), 0, 0, '', 0, '', 0
FROM (
    SELECT space, user_id FROM sessions UNION SELECT space, user_id FROM records
    UNION SELECT space, user_id FROM state_keys UNION SELECT space, user_id FROM series
) AS held;

-- name: seed_index_jobs
INSERT INTO jobs
SELECT space, user_id, 'index', 'index', 'ready', '{}', 0, 0, 8, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0 FROM index_heads
WHERE true
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET state = 'ready', due_at_us = 0, attempts = 0, worker = NULL;
