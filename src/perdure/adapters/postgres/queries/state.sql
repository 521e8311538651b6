-- Key-value state.

-- name: state_revision_locked
SELECT revision FROM state_keys WHERE space = :space AND user_id = :user_id AND key = :key FOR NO KEY UPDATE;
