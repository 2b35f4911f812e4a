package agentd

import (
	"context"
	"path/filepath"

	"agentd/internal/profile"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/sqlite"
)

// openStore opens the store at a location: a data folder, ":memory:" or the URL of a
// PostgreSQL database.
func openStore(ctx context.Context, location string, readOnly bool, d *profile.Database) (store.Store, error) {
	if postgres.Is(location) {
		return postgres.Open(ctx, location, &postgres.Options{ReadOnly: readOnly, Connections: d.MaxConnections,
			RetryFor: d.RetryFor.Std(), StatementTimeout: d.StatementTimeout.Std()})
	}
	return sqlite.Open(storePath(location), &sqlite.Options{ReadOnly: readOnly})
}

// storePath is the file of a data folder.
func storePath(data string) string {
	if data == "" || data == ":memory:" {
		return ":memory:"
	}
	return filepath.Join(data, "agentd.db")
}

// IsDatabase reports whether a location is the URL of a PostgreSQL database and not a
// data folder.
func IsDatabase(location string) bool { return postgres.Is(location) }

// LocationName is a location for people: a URL has no password in it.
func LocationName(location string) string {
	if postgres.Is(location) {
		return postgres.Redacted(location)
	}
	return location
}

// HasPassword is whether a location has a password in it.
func HasPassword(location string) bool {
	return postgres.Is(location) && postgres.HasPassword(location)
}
