// Package postgres keeps everything durable in a PostgreSQL database (13 or later).
//
// What it promises beyond the contract of package store:
//
//   - A Commit that returned nil survives the end of every process, of the server too.
//     Sessions that would not wait for the disk (synchronous_commit = off) are told to.
//   - A Commit is one transaction and, once its statements are known to a connection,
//     one round trip. Commits of different runs do not wait for each other; the server
//     writes to the disk for those that come together.
//   - Who loses the connection in the middle of a Commit learns what became of it: the
//     same change is sent again under the same name, and made at most once, for as long
//     as [Options.RetryFor]. Only then the error is [store.ErrUnknown], and the same
//     *store.Tx may be committed again, by the same rule.
//   - Any number of processes may use a database at once; [store.Fence] decides who
//     drives a run. [Options.Exclusive] keeps the others out.
//   - A URL's password is in no error.
//
// How: READ COMMITTED. A change locks what it depends on in its first statements (the
// run it is fenced by, the runs it writes events of) and looks at it in later ones,
// which see all that was committed before the lock was had. Whatever is not as it must
// be ends the transaction from inside (agentd_refuse in the schema), so no answer has
// to be waited for in the middle.
//
// To add to what is stored: a migration with the same number, tables and columns as the
// embedded store's (numbers are bigint, ids text COLLATE "C", what others wrote bytea);
// the statements in apply_*.go, in the order of the fields of Tx; the reads; what goes
// with a session in dropSession. Copies find new tables by themselves, and refuse
// stores whose tables differ.
package postgres
