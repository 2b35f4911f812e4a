-- Usage is summed by run, model and minute, in the order in which it is read: one
-- tree that a step changes in place, where there were a row and an index entry for
-- every call of a model. 0 stands for no session and no run.
CREATE TABLE usage_sums (
  tenant      INTEGER NOT NULL,
  session     INTEGER NOT NULL,
  run         INTEGER NOT NULL,
  model       INTEGER NOT NULL,
  minute      INTEGER NOT NULL,
  calls       INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost        INTEGER NOT NULL,
  PRIMARY KEY (tenant, session, run, model, minute)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_sums
  SELECT tenant, coalesce(session, 0), coalesce(run, 0), model, time / 60000, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost)
  FROM usage GROUP BY 1, 2, 3, 4, 5;
DROP TABLE usage;
ALTER TABLE usage_sums RENAME TO usage;
