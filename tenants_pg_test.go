package agentd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/postgres/pgtest"
	"agentd/internal/store/sqlite"
)

// houseStore is the variable that has the tests of tenants use a database: its value is
// a URL, in which SCHEMA stands for a schema of each house's own.
const houseStore = "AGENTD_TEST_HOUSE_STORE"

// openHouse opens the store of a house: a file, or a schema of its own in a database.
func openHouse(t *testing.T) (store.Store, error) {
	if url := os.Getenv(houseStore); url != "" {
		return postgres.Open(t.Context(), strings.ReplaceAll(url, "SCHEMA", fmt.Sprint("house", time.Now().UnixNano())), nil)
	}
	return sqlite.Open(filepath.Join(t.TempDir(), "x.db"), nil)
}

// Tenants are as far apart in PostgreSQL as they are in SQLite.
func TestTenantsOnPostgres(t *testing.T) {
	t.Setenv(houseStore, pgtest.Start(t).URL("SCHEMA"))
	for name, test := range map[string]func(*testing.T){
		"TwoTenantsWithTheSameIDs": TestTwoTenantsWithTheSameIDs, "TwoTenantsOverTheChatFace": TestTwoTenantsOverTheChatFace,
		"WhatOthersHaveDoesNotExist": TestWhatOthersHaveDoesNotExist,
	} {
		t.Run(name, test)
	}
}
