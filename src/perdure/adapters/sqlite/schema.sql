-- Messages and sessions are canonical: appended, never edited. Everything else can be remade from them or will end.
-- Every key starts with (space, user_id): nothing is found without its owner.

CREATE TABLE sessions (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    session_number INTEGER NOT NULL CHECK (session_number >= 1),
    session TEXT NOT NULL,
    opened_at_us INTEGER NOT NULL,
    last_at_us INTEGER NOT NULL,
    ended_at_us INTEGER,
    messages INTEGER NOT NULL CHECK (messages >= 0),
    tokens INTEGER NOT NULL CHECK (tokens >= 0),
    turns INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0),
    boundary_seq INTEGER NOT NULL DEFAULT 0 CHECK (boundary_seq >= 0),
    spine_seq INTEGER NOT NULL DEFAULT 0 CHECK (spine_seq >= 0),
    deleted_at_us INTEGER,
    learned_seq INTEGER NOT NULL DEFAULT 0 CHECK (learned_seq >= 0),
    PRIMARY KEY (space, user_id, agent, channel, session_number),
    UNIQUE (space, user_id, agent, channel, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    session_number INTEGER NOT NULL,
    seq INTEGER NOT NULL CHECK (seq >= 1),
    id TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system')),
    content TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    tokens INTEGER NOT NULL CHECK (tokens >= 0),
    metadata TEXT,
    tool_calls TEXT,
    tool_call_id TEXT,
    failed INTEGER NOT NULL CHECK (failed IN (0, 1)),
    PRIMARY KEY (space, user_id, agent, channel, session_number, seq),
    UNIQUE (space, user_id, id),
    FOREIGN KEY (space, user_id, agent, channel, session_number)
        REFERENCES sessions (space, user_id, agent, channel, session_number)
) STRICT;

CREATE TABLE tool_calls (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    call_id TEXT NOT NULL,
    session_number INTEGER NOT NULL,
    name TEXT NOT NULL,
    call_seq INTEGER NOT NULL,
    result_seq INTEGER CHECK (result_seq > call_seq),
    failed INTEGER NOT NULL CHECK (failed IN (0, 1)),
    PRIMARY KEY (space, user_id, agent, channel, call_id, session_number),
    FOREIGN KEY (space, user_id, agent, channel, session_number, call_seq)
        REFERENCES messages (space, user_id, agent, channel, session_number, seq),
    FOREIGN KEY (space, user_id, agent, channel, session_number, result_seq)
        REFERENCES messages (space, user_id, agent, channel, session_number, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'running', 'done', 'dead')),
    payload TEXT NOT NULL,
    due_at_us INTEGER,
    attempts INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    again INTEGER NOT NULL CHECK (again IN (0, 1)),
    worker TEXT,
    repeat TEXT,
    last_error TEXT,
    runs INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, kind, key),
    CHECK ((due_at_us IS NULL) = (state IN ('done', 'dead')))
) STRICT, WITHOUT ROWID;

-- The one index that does not start with an owner: the worker looks for due work of everybody. No call of a user reads it.
CREATE INDEX jobs_due ON jobs (due_at_us) WHERE due_at_us IS NOT NULL;

-- Bounds the count of a user's open jobs.
CREATE INDEX jobs_open ON jobs (space, user_id) WHERE due_at_us IS NOT NULL;

CREATE TABLE owners (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    operations INTEGER NOT NULL CHECK (operations >= 0),
    PRIMARY KEY (space, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    seq INTEGER NOT NULL CHECK (seq >= 1),
    at_us INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    before TEXT,
    after TEXT,
    why TEXT NOT NULL,
    batch INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (space, user_id, seq),
    FOREIGN KEY (space, user_id) REFERENCES owners (space, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tallies (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    session_number INTEGER NOT NULL,
    up_to_seq INTEGER NOT NULL CHECK (up_to_seq >= 0),
    body TEXT NOT NULL,
    operation INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, agent, channel, session_number),
    FOREIGN KEY (space, user_id, agent, channel, session_number)
        REFERENCES sessions (space, user_id, agent, channel, session_number),
    FOREIGN KEY (space, user_id, operation) REFERENCES operations (space, user_id, seq)
) STRICT, WITHOUT ROWID;

-- State and time series. Values and entries are the caller's own data; windows say what was fetched, and when.

CREATE TABLE state_keys (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    saved_at_us INTEGER NOT NULL,
    expires_at_us INTEGER,
    size_bytes INTEGER,
    preview TEXT,
    PRIMARY KEY (space, user_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE state_revisions (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    body TEXT,
    saved_at_us INTEGER NOT NULL,
    expires_at_us INTEGER,
    request TEXT NOT NULL,
    PRIMARY KEY (space, user_id, key, revision),
    FOREIGN KEY (space, user_id, key) REFERENCES state_keys (space, user_id, key)
) STRICT;

CREATE TABLE series (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    spec TEXT NOT NULL,
    accumulated_since_us INTEGER NOT NULL,
    last_updated_us INTEGER NOT NULL,
    entries INTEGER NOT NULL CHECK (entries >= 0),
    api_calls INTEGER NOT NULL,
    fetched INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    trims INTEGER NOT NULL,
    floor_us INTEGER NOT NULL,
    incarnation TEXT NOT NULL,
    last_request TEXT NOT NULL,
    last_result TEXT NOT NULL,
    PRIMARY KEY (space, user_id, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_entries (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    id TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    body TEXT NOT NULL,
    first_seen_us INTEGER NOT NULL,
    last_seen_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, id),
    FOREIGN KEY (space, user_id, series) REFERENCES series (space, user_id, series)
) STRICT;

CREATE INDEX series_entries_by_time ON series_entries (space, user_id, series, at_us, id);

CREATE TABLE series_past (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    at_us INTEGER NOT NULL,
    body TEXT NOT NULL,
    seen_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, id, version),
    FOREIGN KEY (space, user_id, series, id) REFERENCES series_entries (space, user_id, series, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_windows (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    start_us INTEGER NOT NULL,
    end_us INTEGER NOT NULL,
    fetched_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, start_us),
    CHECK (start_us < end_us),
    FOREIGN KEY (space, user_id, series) REFERENCES series (space, user_id, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_leases (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    holder TEXT NOT NULL,
    start_us INTEGER NOT NULL,
    end_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, holder, start_us),
    CHECK (start_us < end_us)
) STRICT, WITHOUT ROWID;

-- Open sessions are few; the sweeper looks for them.
CREATE INDEX sessions_open ON sessions (space, user_id, agent, channel, session_number) WHERE ended_at_us IS NULL;

-- Counters and notes about one agent on one channel. Each writer changes its own columns only.
CREATE TABLE agent_states (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    turns INTEGER NOT NULL CHECK (turns >= 0),
    last_at_us INTEGER,
    last_text TEXT,
    profile TEXT,
    casual INTEGER NOT NULL CHECK (casual IN (0, 1)),
    private INTEGER NOT NULL DEFAULT 0 CHECK (private IN (0, 1)),
    rolling_tried_us INTEGER,
    rolling_done_us INTEGER,
    rolling_error TEXT,
    curated_us INTEGER,
    curated_memories INTEGER,
    turn_holder TEXT,
    turn_until_us INTEGER,
    shared INTEGER NOT NULL DEFAULT 0 CHECK (shared IN (0, 1)),
    PRIMARY KEY (space, user_id, agent, channel),
    CHECK ((turn_holder IS NULL) = (turn_until_us IS NULL))
) STRICT, WITHOUT ROWID;

-- Summaries, derived from the log. A version is never changed, except that it may be marked as undone.
CREATE TABLE digests (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    session_number INTEGER NOT NULL CHECK (session_number >= 0),
    kind TEXT NOT NULL CHECK (kind IN ('fold', 'rolling', 'session', 'spine')),
    version INTEGER NOT NULL CHECK (version >= 1),
    made_at_us INTEGER NOT NULL,
    undone INTEGER NOT NULL CHECK (undone IN (0, 1)),
    body TEXT NOT NULL,
    operation INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, agent, channel, session_number, kind, version),
    FOREIGN KEY (space, user_id, operation) REFERENCES operations (space, user_id, seq)
) STRICT, WITHOUT ROWID;

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
    PRIMARY KEY (space, user_id, kind, field, value, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX operations_of ON operations (space, user_id, kind, key, seq);

CREATE INDEX operations_batch ON operations (space, user_id, batch);

-- Fingerprints of what was put into prompts, so that it is not learned anew when it comes back.
CREATE TABLE echoes (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX echoes_by_age ON echoes (space, user_id, at_us);

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

-- What the overseer decided: the newest ones of each user. `number` is the order in which they were stored, not a name.
CREATE TABLE decisions (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 1),
    at_us INTEGER NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('before', 'after')),
    body TEXT NOT NULL,
    PRIMARY KEY (space, user_id, id)
) STRICT;

CREATE INDEX decisions_newest ON decisions (space, user_id, number);

-- How often models were asked on behalf of a user, and what that cost.
CREATE TABLE usage (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    purpose TEXT NOT NULL,
    outcome TEXT NOT NULL,
    calls INTEGER NOT NULL CHECK (calls >= 0),
    tokens_in INTEGER NOT NULL CHECK (tokens_in >= 0),
    tokens_out INTEGER NOT NULL CHECK (tokens_out >= 0),
    took_us INTEGER NOT NULL CHECK (took_us >= 0),
    last_at_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, purpose, outcome)
) STRICT, WITHOUT ROWID;

-- Who asked for what of a user's data, and what that touched: ids and numbers, never words. The newest ones of each user;
-- `number` is the order in which they were stored, not a name.
CREATE TABLE accesses (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 1),
    at_us INTEGER NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    actor TEXT NOT NULL,
    face TEXT NOT NULL CHECK (face IN ('python', 'cli', 'http', 'mcp', 'web')),
    call TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('read', 'change', 'erase', 'admin')),
    outcome TEXT NOT NULL CHECK (outcome IN ('begun', 'done', 'refused')),
    error TEXT NOT NULL,
    touched TEXT NOT NULL,
    operations TEXT NOT NULL,
    PRIMARY KEY (space, user_id, id)
) STRICT;

CREATE INDEX accesses_newest ON accesses (space, user_id, number);
