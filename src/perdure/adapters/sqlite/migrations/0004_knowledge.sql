-- What is known, in one form: a body under a key, found by terms. Every change is an operation of the journal.
CREATE TABLE records (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    operation INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, kind, key),
    FOREIGN KEY (space, user_id, operation) REFERENCES operations (space, user_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE record_terms (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (space, user_id, kind, field, value, key),
    FOREIGN KEY (space, user_id, kind, key) REFERENCES records (space, user_id, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX record_terms_of ON record_terms (space, user_id, kind, key);

-- Fingerprints of what was put into prompts, so that it is not learned anew when it comes back.
CREATE TABLE echoes (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX echoes_by_age ON echoes (space, user_id, at_us);

-- The last message of a session that was looked through for something to learn.
ALTER TABLE sessions ADD COLUMN learned_seq INTEGER NOT NULL DEFAULT 0 CHECK (learned_seq >= 0);

-- Operations that belong to one action have its number: that of the first of them.
ALTER TABLE operations ADD COLUMN batch INTEGER NOT NULL DEFAULT 0;

CREATE INDEX operations_of ON operations (space, user_id, kind, key, seq);

CREATE INDEX operations_batch ON operations (space, user_id, batch);

UPDATE operations SET batch = seq;
