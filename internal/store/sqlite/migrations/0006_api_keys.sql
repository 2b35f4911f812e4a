-- What callers of the API show. hash is the SHA-256 of the whole key; the key
-- itself is nowhere. An id is unique among all tenants: a request is looked up by
-- it before its tenant is known. Revoked keys stay, so that a store that ever had
-- a key goes on asking for one. scopes are separated by spaces.
CREATE TABLE api_keys (
  key       INTEGER PRIMARY KEY,
  tenant    INTEGER NOT NULL,
  id        TEXT NOT NULL,
  name      TEXT,
  hash      BLOB NOT NULL,
  scopes    TEXT NOT NULL,
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL,
  revoked   INTEGER NOT NULL,
  last_used INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX api_keys_id ON api_keys (id);
CREATE INDEX api_keys_tenant ON api_keys (tenant);
