package sqlite

import (
	"path/filepath"
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			return openTest(t, filepath.Join(t.TempDir(), "a folder", "x?#%.db"), nil)
		}, func(t *testing.T, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openTest(t, s.(*Store).path, nil)
		})
	})
	t.Run("file, process durability, small pages", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			return openTest(t, filepath.Join(t.TempDir(), "x.db"), &Options{Durability: Process, Readers: 1, pageSize: 512})
		}, func(t *testing.T, s store.Store) store.Store { return s })
	})
	t.Run("memory", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store { return openTest(t, Memory, nil) },
			func(t *testing.T, s store.Store) store.Store { return s })
	})
}
