package store

import "context"

// Memory is a document of what agents remember. Whose it is says its name, which the
// store does not read.
type Memory struct {
	// Name is unique in the tenant.
	Name string
	Text []byte
	// Revision rises by one with each change, beginning at 1.
	Revision int64
	Updated  int64
}

// MemoryReader reads what agents remember.
type MemoryReader interface {
	Memory(ctx context.Context, tenant, name string) (*Memory, error)
}
