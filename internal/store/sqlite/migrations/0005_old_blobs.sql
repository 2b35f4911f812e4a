-- Blobs from before uses were noted may belong to sessions that nothing names. They
-- get a use that never ends, under a session that there is not, so that they do not
-- go with the next session that happens to have the same content.
INSERT INTO blob_uses (session, blob) SELECT 0, key FROM blobs WHERE key NOT IN (SELECT blob FROM blob_uses);
