-- The terms of a record are found by what they say alone: by their record they were looked up only to be replaced. Every memory had
-- its type as a term, and nearly every one that it is active, which nobody asks for.
ALTER TABLE record_terms RENAME TO record_terms_before;

CREATE TABLE record_terms (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (space, user_id, kind, field, value, key)
) STRICT, WITHOUT ROWID;

INSERT INTO record_terms
SELECT space, user_id, kind, field, value, key FROM record_terms_before
WHERE NOT (kind = 'memory' AND (field = 'type' OR (field = 'status' AND value = 'ACTIVE')))
ORDER BY space, user_id, kind, field, value, key;

DROP TABLE record_terms_before;
