-- Who a run is for: the user that its client named, or the API key. NULL is somebody
-- without a name. Usage has it too, because it outlives its run.
ALTER TABLE runs ADD COLUMN "user" bytea;
ALTER TABLE usage ADD COLUMN "user" bytea;
