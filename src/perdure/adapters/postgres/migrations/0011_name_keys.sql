-- Entities are found from other spellings of their names by keys, which are made in Python: until then each is marked.
SELECT set_config('perdure.everyone', 'on', true);

INSERT INTO record_terms (space, user_id, kind, field, value, key)
SELECT space, user_id, kind, 'name keys', 'none yet', key FROM records WHERE kind = 'entity';
