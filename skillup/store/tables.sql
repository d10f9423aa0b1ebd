-- The tables of run.sqlite. JSON and contents are compressed: see `pack` in database.py.

CREATE TABLE run (name TEXT PRIMARY KEY, json BLOB NOT NULL) STRICT;
CREATE TABLE jobs (name TEXT PRIMARY KEY, planned INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE file_lists (sha256 BLOB PRIMARY KEY, json BLOB NOT NULL) STRICT;
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL REFERENCES jobs,
    state TEXT NOT NULL CHECK (state IN ('begun', 'finished', 'retried', 'unused')),
    record BLOB,
    grade BLOB,
    graded INTEGER NOT NULL DEFAULT 0,
    checkpoint BLOB,
    scratch TEXT,
    initial_files BLOB REFERENCES file_lists
) STRICT;
CREATE INDEX attempts_of_job ON attempts (job);
CREATE UNIQUE INDEX one_record ON attempts (job) WHERE state = 'finished';
CREATE TABLE streams (
    attempt INTEGER NOT NULL REFERENCES attempts,
    name TEXT NOT NULL,
    part INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (attempt, name, part)
) STRICT;
CREATE TABLE blobs (sha256 BLOB PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE files (
    attempt INTEGER NOT NULL REFERENCES attempts,
    path TEXT NOT NULL,
    sha256 BLOB NOT NULL REFERENCES blobs,
    PRIMARY KEY (attempt, path)
) STRICT;
CREATE TABLE answers (key TEXT PRIMARY KEY, json BLOB NOT NULL) STRICT;
CREATE TABLE judgements (
    name TEXT NOT NULL,
    attempt INTEGER NOT NULL REFERENCES attempts,
    grade BLOB NOT NULL,
    PRIMARY KEY (name, attempt)
) STRICT;
CREATE TABLE events (id INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;
