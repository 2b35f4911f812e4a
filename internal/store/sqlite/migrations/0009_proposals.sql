-- Calls that a run recorded instead of making them. They go with the run.
CREATE TABLE proposals (
  key       INTEGER PRIMARY KEY,
  run       INTEGER NOT NULL,
  id        TEXT NOT NULL,
  call_id   TEXT NOT NULL,
  name      TEXT NOT NULL,
  effect    TEXT NOT NULL,
  idem_key  TEXT NOT NULL,
  args      BLOB,
  temp      TEXT,
  predicted TEXT,
  reason    TEXT,
  created   INTEGER NOT NULL,
  status    TEXT NOT NULL,
  result    TEXT,
  real      BLOB,
  by        TEXT,
  decided   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX proposals_id ON proposals (run, id);
