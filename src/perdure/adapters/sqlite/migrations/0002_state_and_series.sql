-- State and time series. Values and entries are the caller's own data; windows say what was fetched, and when.

CREATE TABLE state_keys (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    saved_at_us INTEGER NOT NULL,
    expires_at_us INTEGER,
    size_bytes INTEGER,
    preview TEXT,
    PRIMARY KEY (space, user_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE state_revisions (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    body TEXT,
    saved_at_us INTEGER NOT NULL,
    expires_at_us INTEGER,
    request TEXT NOT NULL,
    PRIMARY KEY (space, user_id, key, revision),
    FOREIGN KEY (space, user_id, key) REFERENCES state_keys (space, user_id, key)
) STRICT;

CREATE TABLE series (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    spec TEXT NOT NULL,
    accumulated_since_us INTEGER NOT NULL,
    last_updated_us INTEGER NOT NULL,
    entries INTEGER NOT NULL CHECK (entries >= 0),
    api_calls INTEGER NOT NULL,
    fetched INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    trims INTEGER NOT NULL,
    floor_us INTEGER NOT NULL,
    incarnation TEXT NOT NULL,
    last_request TEXT NOT NULL,
    last_result TEXT NOT NULL,
    PRIMARY KEY (space, user_id, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_entries (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    id TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    body TEXT NOT NULL,
    first_seen_us INTEGER NOT NULL,
    last_seen_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, id),
    FOREIGN KEY (space, user_id, series) REFERENCES series (space, user_id, series)
) STRICT;

CREATE INDEX series_entries_by_time ON series_entries (space, user_id, series, at_us, id);

CREATE TABLE series_past (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    at_us INTEGER NOT NULL,
    body TEXT NOT NULL,
    seen_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, id, version),
    FOREIGN KEY (space, user_id, series, id) REFERENCES series_entries (space, user_id, series, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_windows (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    start_us INTEGER NOT NULL,
    end_us INTEGER NOT NULL,
    fetched_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, start_us),
    CHECK (start_us < end_us),
    FOREIGN KEY (space, user_id, series) REFERENCES series (space, user_id, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_leases (
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    series TEXT NOT NULL,
    holder TEXT NOT NULL,
    start_us INTEGER NOT NULL,
    end_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, series, holder, start_us),
    CHECK (start_us < end_us)
) STRICT, WITHOUT ROWID;
