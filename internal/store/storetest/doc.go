// Package storetest holds implementations of store.Store to the contract of
// that port. [Run] has one named subtest for every promise; an implementation
// that passes can take the place of any other.
//
// What it fixes where the port leaves a choice: to write again what is written
// once (a session, run, entry, event, input or interrupt with a known id) is
// store.ErrConflict; to use, change or delete what does not exist is
// store.ErrNotFound, as is a leaf or a path that leads to a missing entry.
package storetest
