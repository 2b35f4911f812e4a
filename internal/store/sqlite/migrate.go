package sqlite

import (
	"embed"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema to the newest version in one transaction.
func migrate(c *conn) error {
	ms, err := form.Migrations(migrations, 1)
	if err != nil {
		return err
	}
	return applyMigrations(c, ms)
}

func applyMigrations(c *conn, ms []form.Migration) (err error) {
	newest := len(ms)
	have, err := schemaVersion(c)
	if err != nil {
		return err
	}
	if have == newest {
		return nil
	}
	if have > newest {
		return tooNew(have, newest)
	}
	if _, _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _, e := c.exec("ROLLBACK")
			err = errors.Join(err, e)
		}
	}()
	if have == 0 {
		if err := c.script(fmt.Sprintf("PRAGMA application_id = %d; CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT; INSERT INTO schema_version VALUES (0);", applicationID)); err != nil {
			return err
		}
	}
	for _, m := range ms[have:] {
		if err := c.script(m.SQL); err != nil {
			return fmt.Errorf("schema version %d: %w", m.Version, err)
		}
	}
	if _, _, err := c.exec("UPDATE schema_version SET version = ?", newest); err != nil {
		return err
	}
	_, _, err = c.exec("COMMIT")
	return err
}

// schemaVersion is 0 for a new file. A database of something else is an error.
func schemaVersion(c *conn) (int, error) {
	var tables, ours, version int64
	if _, err := c.get("SELECT count(*), coalesce(sum(name = 'schema_version'), 0) FROM sqlite_schema", []any{&tables, &ours}); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	var id int64
	if _, err := c.get("PRAGMA application_id", []any{&id}); err != nil {
		return 0, err
	}
	if ours == 0 || id != applicationID {
		return 0, &fault.Error{Op: "sqlite.Open", Kind: fault.Invalid,
			Err:  errors.New("the file is a database of another program"),
			Hint: "choose another data folder"}
	}
	ok, err := c.get("SELECT version FROM schema_version", []any{&version})
	if err == nil && (!ok || version < 1) {
		err = fmt.Errorf("schema_version holds %d", version)
	}
	return int(version), err
}

// checkVersion is for readers, which cannot migrate.
func checkVersion(c *conn) error {
	ms, err := form.Migrations(migrations, 1)
	if err != nil {
		return err
	}
	have, err := schemaVersion(c)
	switch {
	case err != nil:
		return err
	case have > len(ms):
		return tooNew(have, len(ms))
	case have < len(ms):
		return &fault.Error{Op: "sqlite.Open", Kind: fault.Conflict,
			Err:  fmt.Errorf("the store has schema version %d and this agentd reads %d", have, len(ms)),
			Hint: "open it once for writing, which brings it up to date"}
	}
	return nil
}

func tooNew(have, newest int) error {
	return &fault.Error{Op: "sqlite.Open", Kind: fault.Unsupported,
		Err:  fmt.Errorf("%w: it has schema version %d and this agentd knows versions up to %d", store.ErrTooNew, have, newest),
		Hint: "use the newer agentd, or restore a backup from before the upgrade"}
}
