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
    outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('done', 'refused')),
    error text COLLATE "C" NOT NULL,
    touched text COLLATE "C" NOT NULL,
    operations text COLLATE "C" NOT NULL,
    PRIMARY KEY (space, user_id, id)
);

CREATE INDEX accesses_newest ON accesses (space, user_id, number);

ALTER TABLE accesses ENABLE ROW LEVEL SECURITY;
ALTER TABLE accesses FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON accesses USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);
