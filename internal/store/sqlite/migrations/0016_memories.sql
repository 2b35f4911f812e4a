-- What agents remember beyond their sessions: documents by name.
CREATE TABLE memories (
  key      INTEGER PRIMARY KEY,
  tenant   INTEGER NOT NULL,
  name     TEXT NOT NULL,
  text     BLOB,
  revision INTEGER NOT NULL,
  updated  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX memories_name ON memories (tenant, name);
