-- What people allowed for the rest of a session. It goes with the session.
CREATE TABLE session_rules (
  key       INTEGER PRIMARY KEY,
  session   INTEGER NOT NULL,
  id        TEXT NOT NULL,
  tool      TEXT NOT NULL,
  pattern   BLOB NOT NULL,
  text      TEXT,
  interrupt TEXT,
  by        TEXT,
  created   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX session_rules_id ON session_rules (session, id);
