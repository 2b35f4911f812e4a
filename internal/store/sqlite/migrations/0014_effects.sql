-- Calls that homes of runs want made at nodes of pools; see store.Effect. A row goes
-- when its run has taken the result, or has ended.
CREATE TABLE effects (
  key     INTEGER PRIMARY KEY AUTOINCREMENT,
  run     INTEGER NOT NULL,
  id      TEXT NOT NULL,
  kind    TEXT NOT NULL,
  pool    TEXT NOT NULL,
  class   TEXT NOT NULL,
  version INTEGER NOT NULL,
  status  TEXT NOT NULL,
  stop    INTEGER NOT NULL,
  node    TEXT,
  attempt INTEGER NOT NULL,
  body    BLOB,
  result  BLOB,
  created INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX effects_id ON effects (run, id);
CREATE INDEX effects_open ON effects (key) WHERE status IN ('pending', 'started');
CREATE INDEX effects_node ON effects (node) WHERE status = 'started';

-- The pools that a node serves, between spaces. One of an earlier version serves none.
ALTER TABLE nodes ADD COLUMN pools TEXT NOT NULL DEFAULT '';
