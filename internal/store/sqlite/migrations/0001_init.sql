-- Every table is STRICT. Integer keys stand for tenants, sessions and runs
-- inside the file, so that the many small rows stay small. Times are Unix
-- milliseconds. NULL stands for the empty string and for missing JSON.

CREATE TABLE tenants (
  key INTEGER PRIMARY KEY,
  id  TEXT NOT NULL UNIQUE
) STRICT;

-- AUTOINCREMENT: a key is never used again, also after its session is gone.
-- minute is updated / 60000. The list of recent sessions is indexed by minute,
-- so that the index changes once a minute and not with every commit.
CREATE TABLE sessions (
  key      INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant   INTEGER NOT NULL,
  id       TEXT NOT NULL,
  created  INTEGER NOT NULL,
  minute   INTEGER NOT NULL,
  updated  INTEGER NOT NULL,
  leaf     TEXT,
  title    TEXT,
  metadata BLOB
) STRICT;
CREATE UNIQUE INDEX sessions_id ON sessions (tenant, id);
CREATE INDEX sessions_recent ON sessions (tenant, minute);

-- run is the key of the run; run_id its id when this store does not have it
-- (an imported conversation).
CREATE TABLE entries (
  key     INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  id      TEXT NOT NULL,
  parent  TEXT,
  kind    TEXT NOT NULL,
  run     INTEGER,
  run_id  TEXT,
  created INTEGER NOT NULL,
  body    BLOB
) STRICT;
CREATE UNIQUE INDEX entries_id ON entries (session, id);

-- state is packed (see codec). What never changes and can be long is in
-- run_specs, because an update writes the whole row.
CREATE TABLE runs (
  key             INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant          INTEGER NOT NULL,
  session         INTEGER NOT NULL,
  id              TEXT NOT NULL,
  status          TEXT NOT NULL,
  epoch           INTEGER NOT NULL,
  seq             INTEGER NOT NULL,
  steps           INTEGER NOT NULL,
  created         INTEGER NOT NULL,
  started         INTEGER NOT NULL,
  ended           INTEGER NOT NULL,
  stop_reason     TEXT,
  output_entry    TEXT,
  root_id         TEXT,
  parent_id       TEXT,
  parent_call     TEXT,
  profile         TEXT,
  version         TEXT,
  mode            TEXT,
  idempotency_key TEXT,
  request_hash    TEXT,
  error           BLOB,
  usage           BLOB,
  state           BLOB
) STRICT;
CREATE UNIQUE INDEX runs_id ON runs (tenant, id);
CREATE INDEX runs_tenant ON runs (tenant);
CREATE INDEX runs_session ON runs (session);
CREATE UNIQUE INDEX runs_active ON runs (session) WHERE status IN ('running', 'paused_checkpoint');
CREATE INDEX runs_unfinished ON runs (status) WHERE status NOT IN ('completed', 'failed', 'cancelled');
CREATE UNIQUE INDEX runs_idempotency ON runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_root ON runs (tenant, root_id) WHERE root_id IS NOT NULL;
CREATE INDEX runs_parent ON runs (tenant, parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE run_specs (
  run      INTEGER PRIMARY KEY,
  spec     BLOB,
  metadata BLOB
) STRICT;

CREATE TABLE inputs (
  key     INTEGER PRIMARY KEY,
  run     INTEGER NOT NULL,
  id      TEXT NOT NULL,
  kind    TEXT NOT NULL,
  created INTEGER NOT NULL,
  body    BLOB
) STRICT;
CREATE UNIQUE INDEX inputs_id ON inputs (run, id);

-- One row holds the events and the trace of one run in one Tx. last_seq is the
-- number of its last event, NULL if it has trace alone. The rows
-- [entry, entry+entries) of entries were the dictionary for body.
CREATE TABLE journal (
  key      INTEGER PRIMARY KEY,
  run      INTEGER NOT NULL,
  last_seq INTEGER,
  entry    INTEGER,
  entries  INTEGER NOT NULL,
  body     BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX journal_seq ON journal (run, last_seq);

-- The session of an interrupt is that of its run.
CREATE TABLE interrupts (
  key         INTEGER PRIMARY KEY,
  tenant      INTEGER NOT NULL,
  run         INTEGER NOT NULL,
  id          TEXT NOT NULL,
  root_id     TEXT,
  call_id     TEXT,
  kind        TEXT NOT NULL,
  prompt      TEXT,
  schema      BLOB,
  tool_call   BLOB,
  created     INTEGER NOT NULL,
  expires     INTEGER NOT NULL,
  status      TEXT NOT NULL,
  decision    TEXT,
  answer      BLOB,
  reason      TEXT,
  answered_by TEXT,
  answered    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX interrupts_id ON interrupts (tenant, id);
CREATE INDEX interrupts_status ON interrupts (tenant, status);
CREATE INDEX interrupts_run ON interrupts (run);
CREATE INDEX interrupts_root ON interrupts (tenant, root_id) WHERE root_id IS NOT NULL;

CREATE TABLE models (
  key      INTEGER PRIMARY KEY,
  provider TEXT NOT NULL,
  model    TEXT NOT NULL,
  UNIQUE (provider, model)
) STRICT;

CREATE TABLE usage (
  key         INTEGER PRIMARY KEY,
  tenant      INTEGER NOT NULL,
  session     INTEGER,
  run         INTEGER,
  model       INTEGER NOT NULL,
  time        INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost        INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_session ON usage (tenant, session);

CREATE TABLE blobs (
  key       INTEGER PRIMARY KEY,
  tenant    INTEGER NOT NULL,
  hash      BLOB NOT NULL,
  mime_type TEXT,
  name      TEXT,
  created   INTEGER NOT NULL,
  data      BLOB
) STRICT;
CREATE UNIQUE INDEX blobs_hash ON blobs (tenant, hash);
