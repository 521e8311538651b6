-- Key-value state. The first two parameters are always the owner.

-- name: state_revision
SELECT revision FROM state_keys WHERE space = %s AND user_id = %s AND key = %s;

-- name: state_revision_locked
SELECT revision FROM state_keys WHERE space = %s AND user_id = %s AND key = %s FOR NO KEY UPDATE;

-- name: find_state_revision
SELECT * FROM state_revisions WHERE space = %s AND user_id = %s AND key = %s AND revision = %s;

-- name: find_state_request
SELECT * FROM state_revisions WHERE space = %s AND user_id = %s AND key = %s AND request = %s;

-- name: list_state
SELECT * FROM state_keys
WHERE space = %s AND user_id = %s AND key > %s AND key >= %s AND substr(key, 1, %s) = %s
  AND size_bytes IS NOT NULL AND (expires_at_us IS NULL OR expires_at_us > %s)
ORDER BY key LIMIT %s;

-- name: list_state_revisions
SELECT * FROM state_revisions WHERE space = %s AND user_id = %s AND key = %s AND revision < %s
ORDER BY revision DESC LIMIT %s;

-- name: insert_state_key
INSERT INTO state_keys VALUES (%s, %s, %s, %s, %s, %s, %s, %s);

-- name: update_state_key
UPDATE state_keys SET revision = %s, saved_at_us = %s, expires_at_us = %s, size_bytes = %s, preview = %s
WHERE space = %s AND user_id = %s AND key = %s AND revision = %s;

-- name: insert_state_revision
INSERT INTO state_revisions VALUES (%s, %s, %s, %s, %s, %s, %s, %s);

-- name: forget_state_revisions
DELETE FROM state_revisions WHERE space = %s AND user_id = %s AND key = %s AND revision <= %s;

-- name: remove_state_revisions
DELETE FROM state_revisions WHERE space = %s AND user_id = %s AND key = %s;

-- name: remove_state_key
DELETE FROM state_keys WHERE space = %s AND user_id = %s AND key = %s;
