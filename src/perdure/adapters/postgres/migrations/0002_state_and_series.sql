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

ALTER TABLE state_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE state_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON state_keys USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE state_revisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE state_revisions FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON state_revisions USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE series ENABLE ROW LEVEL SECURITY;
ALTER TABLE series FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON series USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE series_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE series_entries FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON series_entries USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE series_past ENABLE ROW LEVEL SECURITY;
ALTER TABLE series_past FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON series_past USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE series_windows ENABLE ROW LEVEL SECURITY;
ALTER TABLE series_windows FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON series_windows USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);

ALTER TABLE series_leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE series_leases FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON series_leases USING (
    (space = current_setting('perdure.space', true) AND user_id = current_setting('perdure.user', true))
    OR current_setting('perdure.everyone', true) = 'on'
);
