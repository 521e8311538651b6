-- The search index. All of it is derived; what it knows of a text is hashed.
CREATE TABLE index_heads (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    last INTEGER NOT NULL CHECK (last >= 0),
    lexicon INTEGER NOT NULL,
    embedder TEXT NOT NULL,
    vectored INTEGER NOT NULL,
    coming TEXT NOT NULL,
    coming_upto INTEGER NOT NULL,
    PRIMARY KEY (space, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE index_entries (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number > 0),
    kind TEXT NOT NULL,
    ref TEXT NOT NULL,
    replaces INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (space, user_id, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX index_entries_of ON index_entries (space, user_id, kind, ref);

CREATE TABLE index_vectors (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    embedder TEXT NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (space, user_id, embedder, number)
) STRICT, WITHOUT ROWID;

-- Entries and vectors once more, many in a row, so that opening a large index reads few rows.
CREATE TABLE index_packs (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL CHECK (last >= first),
    embedder TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (space, user_id, first)
) STRICT;

-- What is held already gets its entries from a job.
INSERT INTO index_heads
SELECT space, user_id, lower(hex(randomblob(8))), 0, 0, '', 0, '', 0
FROM (
    SELECT space, user_id FROM sessions UNION SELECT space, user_id FROM records
    UNION SELECT space, user_id FROM state_keys UNION SELECT space, user_id FROM series
);

INSERT INTO jobs
SELECT space, user_id, 'index', 'index', 'ready', '{}', 0, 0, 8, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0 FROM index_heads;
