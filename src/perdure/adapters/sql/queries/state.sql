-- Key-value state.

-- name: state_revision
SELECT revision FROM state_keys WHERE space = :space AND user_id = :user_id AND key = :key;

-- name: find_state_revision
SELECT * FROM state_revisions WHERE space = :space AND user_id = :user_id AND key = :key AND revision = :revision;

-- name: find_state_request
SELECT * FROM state_revisions WHERE space = :space AND user_id = :user_id AND key = :key AND request = :request;

-- name: list_state
SELECT * FROM state_keys
WHERE space = :space AND user_id = :user_id AND key > :after AND key >= :prefix
  AND substr(key, 1, :prefix_length) = :prefix AND size_bytes IS NOT NULL
  AND (expires_at_us IS NULL OR expires_at_us > :now_us)
ORDER BY key LIMIT :limit;

-- name: list_state_revisions
SELECT * FROM state_revisions WHERE space = :space AND user_id = :user_id AND key = :key AND revision < :before
ORDER BY revision DESC LIMIT :limit;

-- name: insert_state_key
INSERT INTO state_keys
VALUES (:space, :user_id, :key, :revision, :saved_at_us, :expires_at_us, :size_bytes, :preview);

-- name: update_state_key
UPDATE state_keys SET revision = :revision, saved_at_us = :saved_at_us, expires_at_us = :expires_at_us,
    size_bytes = :size_bytes, preview = :preview
WHERE space = :space AND user_id = :user_id AND key = :key AND revision = :held_revision;

-- name: insert_state_revision
INSERT INTO state_revisions VALUES (:space, :user_id, :key, :revision, :body, :saved_at_us, :expires_at_us, :request);

-- name: forget_state_revisions
DELETE FROM state_revisions WHERE space = :space AND user_id = :user_id AND key = :key AND revision <= :last;

-- name: remove_state_revisions
DELETE FROM state_revisions WHERE space = :space AND user_id = :user_id AND key = :key;

-- name: remove_state_key
DELETE FROM state_keys WHERE space = :space AND user_id = :user_id AND key = :key;
