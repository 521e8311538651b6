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

-- Others talk on this channel, too: what is learned here stays here.
ALTER TABLE agent_states ADD COLUMN shared INTEGER NOT NULL DEFAULT 0 CHECK (shared IN (0, 1));

-- Lessons that folds have drawn become records; a job does that, because only the engine knows how.
INSERT INTO jobs
SELECT DISTINCT space, user_id, 'lessons', 'lessons', 'ready', '{}', 0, 0, 8, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0
FROM digests WHERE kind = 'fold' AND instr(body, '"lessons":[]') = 0;
