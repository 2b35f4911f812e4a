package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"agentd/fault"
	"agentd/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migration is one step of the schema. The numbers are those of the embedded store's
// steps; the first one here makes what that has by then.
type migration struct {
	version int
	sql     string
}

// loadMigrations reads the steps in order. Their files start with the number.
func loadMigrations(fsys fs.FS) ([]migration, error) {
	files, err := fs.Glob(fsys, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var ms []migration
	for _, f := range files { // sorted by name
		name := f[len("migrations/"):]
		if len(name) < 4 {
			return nil, fmt.Errorf("migration %s has no number", name)
		}
		v, err := strconv.Atoi(name[:4])
		if err != nil || len(ms) > 0 && v != ms[len(ms)-1].version+1 {
			return nil, fmt.Errorf("migration %s does not have the next number", name)
		}
		sql, err := fs.ReadFile(fsys, f)
		if err != nil {
			return nil, err
		}
		ms = append(ms, migration{version: v, sql: string(sql)})
	}
	if len(ms) == 0 {
		return nil, errors.New("there are no migrations")
	}
	return ms, nil
}

// lockClass is the first half of the keys of advisory locks ("agtd"); migrateClass is
// that of the lock under which one process migrates.
const (
	lockClass    = 0x61677464
	migrateClass = lockClass + 1
)

// migrate brings the schema to the newest version in one transaction. Processes that
// come at once take turns; all but the first find nothing to do.
func (t *target) migrate(ctx context.Context) error {
	ms, err := loadMigrations(migrations)
	if err != nil {
		return err
	}
	return t.apply(ctx, ms)
}

func (t *target) apply(ctx context.Context, ms []migration) error {
	newest := ms[len(ms)-1].version
	c, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	// Most often there is nothing to do, and nobody to wait for.
	switch have, err := t.version(ctx, c); {
	case err != nil:
		return err
	case have > newest:
		return t.tooNew(have, newest)
	case have == newest:
		return nil
	}
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", int32(migrateClass), t.lock); err != nil {
			return err
		}
		have, err := t.version(ctx, tx)
		switch {
		case err != nil:
			return err
		case have > newest:
			return t.tooNew(have, newest)
		case have == 0:
			schema := pgx.Identifier{t.schema}.Sanitize()
			// IF NOT EXISTS asks for the right to make schemas also where there is one.
			there, err := get(ctx, tx, "SELECT 1 FROM pg_namespace WHERE nspname = $1", func(row) {}, t.schema)
			if err == nil && !there {
				_, err = tx.Exec(ctx, "CREATE SCHEMA "+schema)
			}
			if err == nil {
				_, err = tx.Exec(ctx, "CREATE TABLE schema_version (version bigint NOT NULL)")
			}
			if err == nil {
				_, err = tx.Exec(ctx, "INSERT INTO schema_version VALUES (0)")
			}
			if err != nil {
				return err
			}
		}
		for _, m := range ms {
			if m.version <= have {
				continue
			}
			// Several statements without parameters go the simple way.
			if _, err := tx.Conn().PgConn().Exec(ctx, m.sql).ReadAll(); err != nil {
				return fmt.Errorf("schema version %d: %w", m.version, err)
			}
		}
		_, err = tx.Exec(ctx, "UPDATE schema_version SET version = $1", newest)
		return err
	})
}

// version is 0 for a schema without tables. One with tables of something else is an
// error.
func (t *target) version(ctx context.Context, q querier) (int, error) {
	var tables, ours int64
	if _, err := get(ctx, q, `SELECT count(*), count(*) FILTER (WHERE c.relname = 'schema_version') FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')`,
		func(r row) { tables, ours = r.Int(0), r.Int(1) }, t.schema); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	if ours == 0 {
		return 0, &fault.Error{Op: "postgres.Open", Kind: fault.Invalid,
			Err:  fmt.Errorf("%s: the schema %s has tables of something else", t.name, t.schema),
			Hint: "Name another schema with ?search_path=NAME, or another database."}
	}
	var version int64
	ok, err := get(ctx, q, "SELECT version FROM schema_version", func(r row) { version = r.Int(0) })
	if err == nil && (!ok || version < 1) {
		err = fmt.Errorf("schema_version holds %d", version)
	}
	return int(version), err
}

// checkVersion is for readers, which can not migrate.
func (t *target) checkVersion(ctx context.Context) error {
	ms, err := loadMigrations(migrations)
	if err != nil {
		return err
	}
	newest := ms[len(ms)-1].version
	c, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	have, err := t.version(ctx, c)
	switch {
	case err != nil:
		return err
	case have == 0:
		return &fault.Error{Op: "postgres.Open", Kind: fault.NotFound, Err: fmt.Errorf("%s: there is no store in schema %s", t.name, t.schema),
			Hint: "A store is created by the first run or server."}
	case have > newest:
		return t.tooNew(have, newest)
	case have < newest:
		return &fault.Error{Op: "postgres.Open", Kind: fault.Conflict,
			Err:  fmt.Errorf("%s: the store has schema version %d and this agentd reads %d", t.name, have, newest),
			Hint: "Open it once for writing, which brings it up to date."}
	}
	return nil
}

func (t *target) tooNew(have, newest int) error {
	return &fault.Error{Op: "postgres.Open", Kind: fault.Unsupported,
		Err:  fmt.Errorf("%s: %w: it has schema version %d and this agentd knows versions up to %d", t.name, store.ErrTooNew, have, newest),
		Hint: "Use the newer agentd, or restore a backup from before the upgrade."}
}

// closeSoon closes a connection whose end nobody needs to wait for.
func closeSoon(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
