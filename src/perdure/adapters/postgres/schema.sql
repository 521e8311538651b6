-- Messages and sessions are canonical: appended, never edited. Everything else can be remade from them or will end.
-- Every key starts with (space, user_id): nothing is found without its owner, and the tables can be distributed by user.
-- Text is compared by code point, as everywhere in perdure.

CREATE TABLE sessions (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    session_number bigint NOT NULL CHECK (session_number >= 1),
    session text COLLATE "C" NOT NULL,
    opened_at_us bigint NOT NULL,
    last_at_us bigint NOT NULL,
    ended_at_us bigint,
    messages bigint NOT NULL CHECK (messages >= 0),
    tokens bigint NOT NULL CHECK (tokens >= 0),
    turns bigint NOT NULL DEFAULT 0 CHECK (turns >= 0),
    boundary_seq bigint NOT NULL DEFAULT 0 CHECK (boundary_seq >= 0),
    spine_seq bigint NOT NULL DEFAULT 0 CHECK (spine_seq >= 0),
    deleted_at_us bigint,
    learned_seq bigint NOT NULL DEFAULT 0 CHECK (learned_seq >= 0),
    PRIMARY KEY (space, user_id, agent, channel, session_number),
    UNIQUE (space, user_id, agent, channel, session)
);

CREATE TABLE messages (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    session_number bigint NOT NULL,
    seq bigint NOT NULL CHECK (seq >= 1),
    id text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system')),
    content text COLLATE "C" NOT NULL,
    at_us bigint NOT NULL,
    tokens bigint NOT NULL CHECK (tokens >= 0),
    metadata text COLLATE "C",
    tool_calls text COLLATE "C",
    tool_call_id text COLLATE "C",
    failed bigint NOT NULL CHECK (failed IN (0, 1)),
    PRIMARY KEY (space, user_id, agent, channel, session_number, seq),
    UNIQUE (space, user_id, id),
    FOREIGN KEY (space, user_id, agent, channel, session_number)
        REFERENCES sessions (space, user_id, agent, channel, session_number)
);

CREATE TABLE tool_calls (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    call_id text COLLATE "C" NOT NULL,
    session_number bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    call_seq bigint NOT NULL,
    result_seq bigint CHECK (result_seq > call_seq),
    failed bigint NOT NULL CHECK (failed IN (0, 1)),
    PRIMARY KEY (space, user_id, agent, channel, call_id, session_number),
    FOREIGN KEY (space, user_id, agent, channel, session_number, call_seq)
        REFERENCES messages (space, user_id, agent, channel, session_number, seq),
    FOREIGN KEY (space, user_id, agent, channel, session_number, result_seq)
        REFERENCES messages (space, user_id, agent, channel, session_number, seq)
);

CREATE TABLE jobs (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('ready', 'running', 'done', 'dead')),
    payload text COLLATE "C" NOT NULL,
    due_at_us bigint,
    attempts bigint NOT NULL,
    attempts_max bigint NOT NULL,
    fence bigint NOT NULL,
    again bigint NOT NULL CHECK (again IN (0, 1)),
    worker text COLLATE "C",
    repeat text COLLATE "C",
    last_error text COLLATE "C",
    runs bigint NOT NULL,
    failures bigint NOT NULL,
    created_at_us bigint NOT NULL,
    updated_at_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, kind, key),
    CHECK ((due_at_us IS NULL) = (state IN ('done', 'dead')))
);

-- The one index that does not start with an owner: the worker looks for due work of everybody. No call of a user reads it.
CREATE INDEX jobs_due ON jobs (due_at_us) WHERE due_at_us IS NOT NULL;

-- Bounds the count of a user's open jobs.
CREATE INDEX jobs_open ON jobs (space, user_id) WHERE due_at_us IS NOT NULL;

CREATE TABLE owners (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    operations bigint NOT NULL CHECK (operations >= 0),
    PRIMARY KEY (space, user_id)
);

CREATE TABLE operations (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL CHECK (seq >= 1),
    at_us bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    before text COLLATE "C",
    after text COLLATE "C",
    why text COLLATE "C" NOT NULL,
    batch bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (space, user_id, seq),
    FOREIGN KEY (space, user_id) REFERENCES owners (space, user_id)
);

CREATE TABLE tallies (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    session_number bigint NOT NULL,
    up_to_seq bigint NOT NULL CHECK (up_to_seq >= 0),
    body text COLLATE "C" NOT NULL,
    operation bigint NOT NULL,
    PRIMARY KEY (space, user_id, agent, channel, session_number),
    FOREIGN KEY (space, user_id, agent, channel, session_number)
        REFERENCES sessions (space, user_id, agent, channel, session_number),
    FOREIGN KEY (space, user_id, operation) REFERENCES operations (space, user_id, seq)
);

-- The database refuses rows of other owners even if a condition of ours were missing. Each transaction says whose it is;
-- `perdure.everyone` is switched on by the few calls that concern the whole store: claiming jobs, verification, backup.

-- State and time series. Values and entries are the caller's own data; windows say what was fetched, and when.

CREATE TABLE state_keys (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL CHECK (revision >= 1),
    saved_at_us bigint NOT NULL,
    expires_at_us bigint,
    size_bytes bigint,
    preview text COLLATE "C",
    PRIMARY KEY (space, user_id, key)
);

CREATE TABLE state_revisions (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL CHECK (revision >= 1),
    body text COLLATE "C",
    saved_at_us bigint NOT NULL,
    expires_at_us bigint,
    request text COLLATE "C" NOT NULL,
    PRIMARY KEY (space, user_id, key, revision),
    FOREIGN KEY (space, user_id, key) REFERENCES state_keys (space, user_id, key)
);

CREATE TABLE series (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    series text COLLATE "C" NOT NULL,
    spec text COLLATE "C" NOT NULL,
    accumulated_since_us bigint NOT NULL,
    last_updated_us bigint NOT NULL,
    entries bigint NOT NULL CHECK (entries >= 0),
    api_calls bigint NOT NULL,
    fetched bigint NOT NULL,
    duplicates bigint NOT NULL,
    removed bigint NOT NULL,
    trims bigint NOT NULL,
    floor_us bigint NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    last_request text COLLATE "C" NOT NULL,
    last_result text COLLATE "C" NOT NULL,
    PRIMARY KEY (space, user_id, series)
);

CREATE TABLE series_entries (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    series text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    at_us bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    first_seen_us bigint NOT NULL,
    last_seen_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, series, id),
    FOREIGN KEY (space, user_id, series) REFERENCES series (space, user_id, series)
);

CREATE INDEX series_entries_by_time ON series_entries (space, user_id, series, at_us, id);

CREATE TABLE series_past (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    series text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    at_us bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    seen_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, series, id, version),
    FOREIGN KEY (space, user_id, series, id) REFERENCES series_entries (space, user_id, series, id)
);

CREATE TABLE series_windows (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    series text COLLATE "C" NOT NULL,
    start_us bigint NOT NULL,
    end_us bigint NOT NULL,
    fetched_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, series, start_us),
    CHECK (start_us < end_us),
    FOREIGN KEY (space, user_id, series) REFERENCES series (space, user_id, series)
);

CREATE TABLE series_leases (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    series text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    start_us bigint NOT NULL,
    end_us bigint NOT NULL,
    until_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, series, holder, start_us),
    CHECK (start_us < end_us)
);

-- Open sessions are few; the sweeper looks for them.
CREATE INDEX sessions_open ON sessions (space, user_id, agent, channel, session_number) WHERE ended_at_us IS NULL;

-- Counters and notes about one agent on one channel. Each writer changes its own columns only.
CREATE TABLE agent_states (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    turns bigint NOT NULL CHECK (turns >= 0),
    last_at_us bigint,
    last_text text COLLATE "C",
    profile text COLLATE "C",
    casual bigint NOT NULL CHECK (casual IN (0, 1)),
    private bigint NOT NULL DEFAULT 0 CHECK (private IN (0, 1)),
    rolling_tried_us bigint,
    rolling_done_us bigint,
    rolling_error text COLLATE "C",
    curated_us bigint,
    curated_memories bigint,
    turn_holder text COLLATE "C",
    turn_until_us bigint,
    shared bigint NOT NULL DEFAULT 0 CHECK (shared IN (0, 1)),
    PRIMARY KEY (space, user_id, agent, channel),
    CHECK ((turn_holder IS NULL) = (turn_until_us IS NULL))
);

-- Summaries, derived from the log. A version is never changed, except that it may be marked as undone.
CREATE TABLE digests (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    session_number bigint NOT NULL CHECK (session_number >= 0),
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('fold', 'rolling', 'session', 'spine')),
    version bigint NOT NULL CHECK (version >= 1),
    made_at_us bigint NOT NULL,
    undone bigint NOT NULL CHECK (undone IN (0, 1)),
    body text COLLATE "C" NOT NULL,
    operation bigint NOT NULL,
    PRIMARY KEY (space, user_id, agent, channel, session_number, kind, version),
    FOREIGN KEY (space, user_id, operation) REFERENCES operations (space, user_id, seq)
);

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
    PRIMARY KEY (space, user_id, kind, field, value, key)
);

CREATE INDEX record_terms_of ON record_terms (space, user_id, kind, key);

CREATE INDEX operations_of ON operations (space, user_id, kind, key, seq);

CREATE INDEX operations_batch ON operations (space, user_id, batch);

-- Fingerprints of what was put into prompts, so that it is not learned anew when it comes back.
CREATE TABLE echoes (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    at_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, hash)
);

CREATE INDEX echoes_by_age ON echoes (space, user_id, at_us);

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

-- What the overseer decided: the newest ones of each user. `number` is the order in which they were stored, not a name.
CREATE TABLE decisions (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number >= 1),
    at_us bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('before', 'after')),
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (space, user_id, id)
);

CREATE INDEX decisions_newest ON decisions (space, user_id, number);

-- How often models were asked on behalf of a user, and what that cost.
CREATE TABLE usage (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    purpose text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    calls bigint NOT NULL CHECK (calls >= 0),
    tokens_in bigint NOT NULL CHECK (tokens_in >= 0),
    tokens_out bigint NOT NULL CHECK (tokens_out >= 0),
    took_us bigint NOT NULL CHECK (took_us >= 0),
    last_at_us bigint NOT NULL,
    PRIMARY KEY (space, user_id, purpose, outcome)
);

-- Who asked for what of a user's data, and what that touched: ids and numbers, never words. The newest ones of each user;
-- `number` is the order in which they were stored, not a name.
CREATE TABLE accesses (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number >= 1),
    at_us bigint NOT NULL,
    agent text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    face text COLLATE "C" NOT NULL CHECK (face IN ('python', 'cli', 'http', 'mcp', 'web')),
    call text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL CHECK (action IN ('read', 'change', 'erase', 'admin')),
    outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('begun', 'done', 'refused')),
    error text COLLATE "C" NOT NULL,
    touched text COLLATE "C" NOT NULL,
    operations text COLLATE "C" NOT NULL,
    PRIMARY KEY (space, user_id, id)
);

CREATE INDEX accesses_newest ON accesses (space, user_id, number);

-- Each transaction that changes something of a user's leaves its token here. Anyone who lost the answer to a commit asks for it.
CREATE TABLE commits (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    token bigint NOT NULL CHECK (token >= 0),
    done bigint NOT NULL CHECK (done IN (0, 1)),
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space, user_id, token)
);

-- Only the rows of the user that a transaction has named can be seen and written, by the tables' owner too. A row whose user did
-- not arrive where it is held (`perdure.space` and `perdure.user` are set for a transaction, and tables may lie on other servers)
-- is refused aloud: were it just hidden, what is lost on the way would look like an empty answer.
DO $$
DECLARE held regclass;
BEGIN
    FOR held IN
        SELECT c.oid::regclass FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND a.attname = 'user_id' AND NOT a.attisdropped
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', held);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', held);
        EXECUTE format($policy$
            CREATE POLICY own_rows ON %s USING (CASE
                WHEN current_setting('perdure.everyone', true) = 'on' THEN true
                WHEN coalesce(current_setting('perdure.space', true), '') = '' OR coalesce(current_setting('perdure.user', true), '') = ''
                    THEN ('whose rows are meant did not arrive' || coalesce(current_setting('perdure.user', true), ''))::boolean
                ELSE space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true)
            END)
        $policy$, held);
    END LOOP;
END $$;

-- PostgreSQL samples the values of columns for its planner and keeps them in a catalog of its own, which only a superuser can
-- clean: what was forgotten would stay there. No values of columns that hold what people said or named, or that may name a person,
-- are kept. Every query goes by a key that begins with space and user, and PostgreSQL takes a value it knows nothing of for rare.
DO $$
DECLARE held record;
BEGIN
    FOR held IN
        SELECT c.oid::regclass AS named, a.attname
        FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid JOIN pg_attribute AS a ON a.attrelid = c.oid
        WHERE p.polname = 'own_rows' AND c.relnamespace = quote_ident(current_schema())::regnamespace AND a.attnum > 0
          AND NOT a.attisdropped AND a.atttypid IN ('text'::regtype, 'bytea'::regtype)
          AND a.attname NOT IN ('space', 'kind', 'state', 'role', 'field', 'purpose', 'outcome', 'embedder', 'face', 'call',
                                'action')
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', held.named, held.attname);
    END LOOP;
END $$;
