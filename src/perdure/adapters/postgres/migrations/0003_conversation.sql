-- The working set of a session starts after `boundary_seq`; the messages up to there are what its newest fold stands for.
ALTER TABLE sessions ADD COLUMN turns bigint NOT NULL DEFAULT 0 CHECK (turns >= 0);
ALTER TABLE sessions ADD COLUMN boundary_seq bigint NOT NULL DEFAULT 0 CHECK (boundary_seq >= 0);
ALTER TABLE sessions ADD COLUMN spine_seq bigint NOT NULL DEFAULT 0 CHECK (spine_seq >= 0);
ALTER TABLE sessions ADD COLUMN deleted_at_us bigint;

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

-- The migrating role may be bound by row-level security itself.
SELECT set_config('perdure.everyone', 'on', true);

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

ALTER TABLE agent_states ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_states FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON agent_states USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE digests ENABLE ROW LEVEL SECURITY;
ALTER TABLE digests FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON digests USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);
