-- Each transaction that changes something of a user's leaves its token here. Whoever lost the answer to a commit asks for it.
CREATE TABLE commits (
    space text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    token bigint NOT NULL CHECK (token >= 0),
    done bigint NOT NULL CHECK (done IN (0, 1)),
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space, user_id, token)
);

ALTER TABLE commits ENABLE ROW LEVEL SECURITY;
ALTER TABLE commits FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON commits USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);
