// Package walvfs makes a commit of SQLite cheaper on Linux: it is a file layer
// of SQLite (a VFS, https://www.sqlite.org/vfs.html) over the default one that
// changes two things about the write-ahead log, and nothing about any other file.
//
// SQLite writes a commit to the log page by page, and each page with two calls,
// for its header and for its content. Here they are gathered and leave in one
// call when the commit is complete. And SQLite as it is built in Go waits for the
// disk with fsync, which also writes the file's time of change, where fdatasync
// does: SQLite itself uses it wherever it finds it at compile time ("as far as
// SQLite is concerned, an fdatasync() is always adequate", os_unix.c).
//
// What SQLite relies on is kept. Writes reach the file in their order. A write that
// fails is reported at the latest by the call that would have completed the commit
// or by the sync after it, before SQLite lets anybody see the commit. Whoever
// reads or measures the log through the same file sees what was written. So a
// process that is killed in between leaves a log that ends in the middle of a
// commit, as it would without this package.
package walvfs
