-- Budgets that runs share. What is held is the sum of the holds in the pot.
CREATE TABLE pots (
  key           INTEGER PRIMARY KEY,
  tenant        INTEGER NOT NULL,
  kind          TEXT NOT NULL,
  id            TEXT NOT NULL,
  money         INTEGER NOT NULL,
  tokens        INTEGER NOT NULL,
  calls         INTEGER NOT NULL,
  failures      INTEGER NOT NULL,
  held_money    INTEGER NOT NULL,
  held_tokens   INTEGER NOT NULL,
  more_money    INTEGER NOT NULL,
  more_tokens   INTEGER NOT NULL,
  more_calls    INTEGER NOT NULL,
  more_failures INTEGER NOT NULL,
  updated       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX pots_id ON pots (tenant, kind, id);

-- What a run holds in a pot: for the call that is open, named by call (NULL when it
-- is settled), and to close its answer.
CREATE TABLE holds (
  run         INTEGER NOT NULL,
  pot         INTEGER NOT NULL,
  call        TEXT,
  money       INTEGER NOT NULL,
  tokens      INTEGER NOT NULL,
  keep_money  INTEGER NOT NULL,
  keep_tokens INTEGER NOT NULL,
  PRIMARY KEY (run, pot)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_pot ON holds (pot);
