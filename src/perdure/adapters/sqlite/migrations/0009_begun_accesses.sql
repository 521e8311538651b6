-- What gives data away or destroys it is in the log before it is begun. SQLite changes no CHECK, so the table is made anew.
CREATE TABLE accesses_held AS SELECT * FROM accesses;
DROP TABLE accesses;

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
INSERT INTO accesses SELECT * FROM accesses_held;
DROP TABLE accesses_held;
