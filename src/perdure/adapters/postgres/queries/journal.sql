-- The journal, and the derived rows that are only written together with it.

-- name: find_owner_locked
SELECT operations FROM owners WHERE space = :space AND user_id = :user_id FOR UPDATE;
