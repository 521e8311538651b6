-- What is known, in one form: a body under a key, found by terms. Every change is an operation of the journal.
CREATE TABLE records (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    operation bigint NOT NULL,
    PRIMARY KEY (space, user_id, kind, key),
    FOREIGN KEY (space, user_id, operation) REFERENCES operations (space, user_id, seq)
);

CREATE TABLE record_terms (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    field text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (space, user_id, kind, field, value, key),
    FOREIGN KEY (space, user_id, kind, key) REFERENCES records (space, user_id, kind, key)
);

CREATE INDEX record_terms_of ON record_terms (space, user_id, kind, key);

-- Fingerprints of what was put into prompts, so that it is not learned anew when it comes back.
CREATE TABLE echoes (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    at_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, hash)
);

CREATE INDEX echoes_by_age ON echoes (space, user_id, at_us);

-- The last message of a session that was looked through for something to learn.
ALTER TABLE sessions ADD COLUMN learned_seq bigint NOT NULL DEFAULT 0 CHECK (learned_seq >= 0);

-- Operations that belong to one action have its number: that of the first of them.
ALTER TABLE operations ADD COLUMN batch bigint NOT NULL DEFAULT 0;

CREATE INDEX operations_of ON operations (space, user_id, kind, key, seq);

CREATE INDEX operations_batch ON operations (space, user_id, batch);

-- The migrating role may be bound by row-level security itself.
SELECT set_config('perdure.everyone', 'on', true);

UPDATE operations SET batch = seq;

ALTER TABLE records ENABLE ROW LEVEL SECURITY;
ALTER TABLE records FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON records USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE record_terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE record_terms FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON record_terms USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE echoes ENABLE ROW LEVEL SECURITY;
ALTER TABLE echoes FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON echoes USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);
