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
    outcome TEXT NOT NULL CHECK (outcome IN ('done', 'refused')),
    error TEXT NOT NULL,
    touched TEXT NOT NULL,
    operations TEXT NOT NULL,
    PRIMARY KEY (space, user_id, id)
) STRICT;

CREATE INDEX accesses_newest ON accesses (space, user_id, number);
