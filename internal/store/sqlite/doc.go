// Package sqlite keeps everything durable in one SQLite file (or in memory).
//
// What it promises beyond the contract of package store:
//
//   - A Commit that returned nil survives the end of the process at any
//     instruction, and with [Full] durability a power cut as well.
//   - Committers that wait at the same time share one transaction and one
//     fsync; a Tx that is refused does not fail its neighbours. Nobody waits
//     for company: a lone Commit starts at once.
//   - One process writes to a file at a time. A second one is refused with an
//     error that names the first ([Open]); it may still read ([Options.ReadOnly]).
//   - Size grows linearly. Space of deleted rows is used again.
//
// How: write-ahead log, one connection that one goroutine at a time writes by, a
// few read-only connections. Tables have integer keys and the few indexes that
// reads need, because what a commit costs is mostly the number of pages it
// touches: every page is checksummed and written to the log. For the same
// reason all events and trace of a run in one Tx are one row of the table
// journal, compressed against the entries of that Tx (see codec). On Linux a layer
// below SQLite ([walvfs]) makes one write of a commit's pages.
package sqlite
