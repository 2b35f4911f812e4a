-- Lists of interrupts are read page by page, in the order of their keys.
CREATE INDEX interrupts_tenant ON interrupts (tenant);

-- Sessions are created once per idempotency key, like runs.
ALTER TABLE sessions ADD COLUMN idempotency_key TEXT;
ALTER TABLE sessions ADD COLUMN request_hash TEXT;
CREATE UNIQUE INDEX sessions_idempotency ON sessions (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
