-- The terms of what was removed go at the end of its transaction. Every memory had its type as a term, and nearly every one that it
-- is active, which nobody asks for.
SELECT set_config('perdure.everyone', 'on', true);

ALTER TABLE record_terms DROP CONSTRAINT IF EXISTS record_terms_space_user_id_kind_key_fkey;

DELETE FROM record_terms WHERE kind = 'memory' AND (field = 'type' OR (field = 'status' AND value = 'ACTIVE'));
