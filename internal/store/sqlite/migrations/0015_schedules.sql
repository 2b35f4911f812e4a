-- What starts runs at certain times, beside what the configuration says. Nothing is
-- written here when a time is due: the key of the run that was started says it.
CREATE TABLE schedules (
  key      INTEGER PRIMARY KEY,
  tenant   INTEGER NOT NULL,
  id       TEXT NOT NULL,
  name     TEXT NOT NULL,
  plan     BLOB NOT NULL,
  paused   INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  created  INTEGER NOT NULL,
  updated  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedules_id ON schedules (tenant, id);
CREATE UNIQUE INDEX schedules_name ON schedules (tenant, name);
