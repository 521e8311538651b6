-- The search index.

-- name: index_head
SELECT * FROM index_heads WHERE space = :space AND user_id = :user_id;

-- name: advance_index
INSERT INTO index_heads VALUES (:space, :user_id, :incarnation, :count, :lexicon, '', 0, '', 0)
ON CONFLICT (space, user_id) DO UPDATE SET last = index_heads.last + excluded.last
RETURNING last;

-- name: put_index_head
UPDATE index_heads SET lexicon = :lexicon, embedder = :embedder, vectored = :vectored, coming = :coming,
    coming_upto = :coming_upto
WHERE space = :space AND user_id = :user_id;

-- name: index_entries
SELECT * FROM index_entries
WHERE space = :space AND user_id = :user_id AND number > :after AND number <= :upto ORDER BY number LIMIT :limit;

-- name: remove_gone_index_entries
DELETE FROM index_entries WHERE space = :space AND user_id = :user_id AND kind = 'gone';

-- name: unlink_index_entries
UPDATE index_entries SET replaces = 0 WHERE space = :space AND user_id = :user_id AND replaces <> 0;

-- name: remove_loose_index_vectors
DELETE FROM index_vectors WHERE space = :space AND user_id = :user_id AND NOT EXISTS (
    SELECT 1 FROM index_entries AS e
    WHERE e.space = index_vectors.space AND e.user_id = index_vectors.user_id AND e.number = index_vectors.number
);

-- name: highest_index_entry
SELECT max(number) FROM index_entries WHERE space = :space AND user_id = :user_id;

-- name: count_index_entries
SELECT count(*) FROM index_entries WHERE space = :space AND user_id = :user_id AND kind = :kind;

-- name: insert_index_entry
INSERT INTO index_entries VALUES (:space, :user_id, :number, :kind, :ref, :replaces, :body);

-- name: remove_index_entry
DELETE FROM index_entries WHERE space = :space AND user_id = :user_id AND number = :number;

-- name: index_entry_replaces
SELECT replaces FROM index_entries WHERE space = :space AND user_id = :user_id AND number = :number;

-- name: index_vectors
SELECT number, body FROM index_vectors
WHERE space = :space AND user_id = :user_id AND embedder = :embedder AND number > :after AND number <= :upto
ORDER BY number;

-- name: remove_index_vector
DELETE FROM index_vectors WHERE space = :space AND user_id = :user_id AND number = :number;

-- name: remove_index_vectors
DELETE FROM index_vectors WHERE space = :space AND user_id = :user_id AND embedder = :embedder;

-- name: index_packs
SELECT * FROM index_packs WHERE space = :space AND user_id = :user_id ORDER BY first;

-- name: index_pack_spans
SELECT first, last FROM index_packs WHERE space = :space AND user_id = :user_id ORDER BY first;

-- name: insert_index_pack
INSERT INTO index_packs VALUES (:space, :user_id, :first, :last, :embedder, :body);

-- name: remove_index_packs_within
DELETE FROM index_packs WHERE space = :space AND user_id = :user_id AND first <= :last AND last >= :first;

-- name: remove_index_packs
DELETE FROM index_packs WHERE space = :space AND user_id = :user_id;

-- name: seed_index_jobs
-- With as many tries as `INDEX_ATTEMPTS_MAX`.
INSERT INTO jobs
SELECT space, user_id, 'index', 'index', 'ready', '{}', 0, 0, 1000, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0 FROM index_heads
WHERE true
ON CONFLICT (space, user_id, kind, key) DO UPDATE SET state = 'ready', due_at_us = 0, attempts = 0, worker = NULL;
