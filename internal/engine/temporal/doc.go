// Package temporal is an [engine.Executor] on Temporal: it decides at which node and
// when a run is driven, and nothing else.
//
// A run that has something to do has a workflow, which is a loop: an activity drives
// the run at some node until it is parked or has ended; then the loop waits until
// somebody wakes it, or for the time of an interrupt. Temporal finds out that a node is
// gone by its missing heartbeats and has the run driven elsewhere; timers, schedules and
// the workflows of child runs are its too. What a run is stays in the store: payloads
// are ids, so no limit of Temporal's histories touches a run, and a node that lost
// Temporal goes on with what it drives.
//
// It promises: a run is driven by one node at a time, whatever Temporal believes, as
// claims and epochs of the store say so; starting and waking are idempotent; what was
// not told, because Temporal could not be reached or the process ended, is found in the
// store by each node's sweep. The loop's code is replayed against the histories in
// testdata; one that does not replay there must not be released.
package temporal
