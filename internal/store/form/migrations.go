package form

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
)

// Migration is one step of a schema. Steps are numbered without gaps and are never
// changed once they are released.
type Migration struct {
	Version int
	SQL     string
}

// Migrations reads the steps of a schema from the folder migrations, in order. Their
// files start with the number: 0001_init.sql. first is that of the first one.
func Migrations(fsys fs.FS, first int) ([]Migration, error) {
	files, err := fs.Glob(fsys, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var ms []Migration
	for i, f := range files { // sorted by name
		name := f[len("migrations/"):]
		if len(name) < 4 {
			return nil, fmt.Errorf("migration %s has no number", name)
		}
		v, err := strconv.Atoi(name[:4])
		if err != nil || v != first+i {
			return nil, fmt.Errorf("migration %s is not number %d", name, first+i)
		}
		sql, err := fs.ReadFile(fsys, f)
		if err != nil {
			return nil, err
		}
		ms = append(ms, Migration{Version: v, SQL: string(sql)})
	}
	if len(ms) == 0 {
		return nil, errors.New("there are no migrations")
	}
	return ms, nil
}
