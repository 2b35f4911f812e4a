-- What is known of the blobs that sessions use. A row outlives the content: from
-- expired on the session does not use the blob any more (see blob_uses), which goes
-- with its last use.
CREATE TABLE artifacts (
  key       INTEGER PRIMARY KEY,
  session   INTEGER NOT NULL,
  hash      BLOB NOT NULL,
  run_id    TEXT,
  call_id   TEXT,
  name      TEXT,
  mime_type TEXT,
  size      INTEGER NOT NULL,
  created   INTEGER NOT NULL,
  expired   INTEGER NOT NULL,
  why       TEXT
) STRICT;
CREATE UNIQUE INDEX artifacts_session ON artifacts (session, hash);
CREATE INDEX artifacts_hash ON artifacts (hash);
CREATE INDEX artifacts_live ON artifacts (created) WHERE expired = 0;
INSERT INTO artifacts (session, hash, name, mime_type, size, created, expired)
  SELECT u.session, b.hash, b.name, b.mime_type, coalesce(length(b.data), 0), b.created, 0
  FROM blob_uses u JOIN blobs b ON b.key = u.blob WHERE u.session <> 0 ORDER BY b.created;

-- What requests leave out of a conversation, because a provider refused it.
CREATE TABLE quarantine (
  key     INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  entry   TEXT NOT NULL,
  what    TEXT NOT NULL,
  reason  TEXT,
  run_id  TEXT,
  created INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX quarantine_entry ON quarantine (session, entry, what);
