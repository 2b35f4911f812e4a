-- Ephemeral sessions are those of clients that keep their own history: they are
-- not listed among the others, and are dropped some time after their last run.
-- Before this version the metadata said so.
ALTER TABLE sessions ADD COLUMN ephemeral INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET ephemeral = 1, metadata = NULL WHERE CAST(metadata AS TEXT) = '{"ephemeral":true}';

DROP INDEX sessions_recent;
CREATE INDEX sessions_recent ON sessions (tenant, ephemeral, minute);
CREATE INDEX sessions_ephemeral ON sessions (minute) WHERE ephemeral = 1;

-- Which sessions need a blob. A blob that has been in here goes with the last of
-- them. Blobs from before this version are not, and stay.
CREATE TABLE blob_uses (
  session INTEGER NOT NULL,
  blob    INTEGER NOT NULL,
  PRIMARY KEY (session, blob)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_blob ON blob_uses (blob);
