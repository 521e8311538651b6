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

-- Others talk on this channel, too: what is learned here stays here.
ALTER TABLE agent_states ADD COLUMN shared bigint NOT NULL DEFAULT 0 CHECK (shared IN (0, 1));

-- The migrating role may be bound by row-level security itself.
SELECT set_config('perdure.everyone', 'on', true);

-- Lessons that folds have drawn become records; a job does that, because only the engine knows how.
INSERT INTO jobs
SELECT DISTINCT space, user_id, 'lessons', 'lessons', 'ready', '{}', 0, 0, 8, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0
FROM digests WHERE kind = 'fold' AND strpos(body, '"lessons":[]') = 0;

ALTER TABLE decisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE decisions FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON decisions USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON usage USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);
