-- The working set of a session starts after `boundary_seq`; the messages up to there are what its newest fold stands for.
ALTER TABLE sessions ADD COLUMN turns INTEGER NOT NULL DEFAULT 0 CHECK (turns >= 0);
ALTER TABLE sessions ADD COLUMN boundary_seq INTEGER NOT NULL DEFAULT 0 CHECK (boundary_seq >= 0);
ALTER TABLE sessions ADD COLUMN spine_seq INTEGER NOT NULL DEFAULT 0 CHECK (spine_seq >= 0);
ALTER TABLE sessions ADD COLUMN deleted_at_us INTEGER;

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

UPDATE sessions SET turns = (
    SELECT count(*) FROM messages AS m
    WHERE m.space = sessions.space AND m.user_id = sessions.user_id AND m.agent = sessions.agent
      AND m.channel = sessions.channel AND m.session_number = sessions.session_number AND m.role = 'user'
);

INSERT INTO agent_states (space, user_id, agent, channel, turns, last_at_us, casual)
SELECT space, user_id, agent, channel, count(*), max(at_us), 0 FROM messages
WHERE role = 'user' GROUP BY space, user_id, agent, channel;

-- Counting once more finds out what is due in sessions that were there before.
UPDATE jobs SET state = 'ready', due_at_us = updated_at_us, attempts = 0 WHERE kind = 'tally' AND state = 'done';
