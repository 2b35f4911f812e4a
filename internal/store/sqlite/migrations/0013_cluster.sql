-- Several nodes on one store. A node's row is its lease; claims and holds count as
-- long as it does, so that renewing costs one row whatever a node drives.
CREATE TABLE nodes (
  key     INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  name    TEXT,
  version INTEGER NOT NULL,
  worker  INTEGER NOT NULL,
  started INTEGER NOT NULL,
  until   INTEGER NOT NULL
) STRICT;

-- Which node drives a run. node is NULL for a run that waits for a node that
-- understands version needs. Runs that nobody drives have no row.
CREATE TABLE claims (
  run   INTEGER PRIMARY KEY,
  node  TEXT,
  needs INTEGER NOT NULL
) STRICT;
CREATE INDEX claims_node ON claims (node) WHERE node IS NOT NULL;

-- What people and programs want of runs, on its way to who drives them.
CREATE TABLE mail (
  key     INTEGER PRIMARY KEY AUTOINCREMENT,
  run     INTEGER NOT NULL,
  id      TEXT NOT NULL,
  kind    TEXT NOT NULL,
  body    BLOB,
  created INTEGER NOT NULL,
  applied INTEGER NOT NULL,
  outcome BLOB
) STRICT;
CREATE UNIQUE INDEX mail_id ON mail (run, id);
CREATE INDEX mail_waiting ON mail (run) WHERE applied = 0;

CREATE TABLE node_holds (
  tenant INTEGER NOT NULL,
  name   TEXT NOT NULL,
  id     TEXT NOT NULL,
  node   TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
