-- Key-value state. Parameters 1 and 2 are always the owner.

-- name: state_revision
SELECT revision FROM state_keys WHERE space = ?1 AND user_id = ?2 AND key = ?3;

-- name: find_state_revision
SELECT * FROM state_revisions WHERE space = ?1 AND user_id = ?2 AND key = ?3 AND revision = ?4;

-- name: find_state_request
SELECT * FROM state_revisions WHERE space = ?1 AND user_id = ?2 AND key = ?3 AND request = ?4;

-- name: list_state
SELECT * FROM state_keys
WHERE space = ?1 AND user_id = ?2 AND key > ?3 AND key >= ?4 AND substr(key, 1, ?5) = ?6
  AND size_bytes IS NOT NULL AND (expires_at_us IS NULL OR expires_at_us > ?7)
ORDER BY key LIMIT ?8;

-- name: list_state_revisions
SELECT * FROM state_revisions WHERE space = ?1 AND user_id = ?2 AND key = ?3 AND revision < ?4
ORDER BY revision DESC LIMIT ?5;

-- name: insert_state_key
INSERT INTO state_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_state_key
UPDATE state_keys SET revision = ?, saved_at_us = ?, expires_at_us = ?, size_bytes = ?, preview = ?
WHERE space = ? AND user_id = ? AND key = ? AND revision = ?;

-- name: insert_state_revision
INSERT INTO state_revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: forget_state_revisions
DELETE FROM state_revisions WHERE space = ?1 AND user_id = ?2 AND key = ?3 AND revision <= ?4;

-- name: remove_state_revisions
DELETE FROM state_revisions WHERE space = ?1 AND user_id = ?2 AND key = ?3;

-- name: remove_state_key
DELETE FROM state_keys WHERE space = ?1 AND user_id = ?2 AND key = ?3;
