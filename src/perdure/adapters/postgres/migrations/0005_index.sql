-- The search index. All of it is derived; what it knows of a text is hashed.
CREATE TABLE index_heads (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    last bigint NOT NULL CHECK (last >= 0),
    lexicon bigint NOT NULL,
    embedder text COLLATE "C" NOT NULL,
    vectored bigint NOT NULL,
    coming text COLLATE "C" NOT NULL,
    coming_upto bigint NOT NULL,
    PRIMARY KEY (space, user_id)
);

CREATE TABLE index_entries (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number > 0),
    kind text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    replaces bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (space, user_id, number)
);

CREATE UNIQUE INDEX index_entries_of ON index_entries (space, user_id, kind, ref);

CREATE TABLE index_vectors (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    embedder text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (space, user_id, embedder, number)
);

-- Entries and vectors once more, many in a row, so that opening a large index reads few rows.
CREATE TABLE index_packs (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL CHECK (last >= first),
    embedder text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (space, user_id, first)
);

-- The migrating role may be bound by row-level security itself.
SELECT set_config('perdure.everyone', 'on', true);

-- What is held already gets its entries from a job.
INSERT INTO index_heads
SELECT space, user_id, md5(random()::text), 0, 0, '', 0, '', 0
FROM (
    SELECT space, user_id FROM sessions UNION SELECT space, user_id FROM records
    UNION SELECT space, user_id FROM state_keys UNION SELECT space, user_id FROM series
) AS held;

INSERT INTO jobs
SELECT space, user_id, 'index', 'index', 'ready', '{}', 0, 0, 8, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0 FROM index_heads;

ALTER TABLE index_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON index_heads USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE index_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_entries FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON index_entries USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE index_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON index_vectors USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE index_packs ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_packs FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON index_packs USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);
