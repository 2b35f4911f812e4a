// Package store is the port to durable state. There is one write primitive,
// [Store.Commit], and it is atomic: all of a [Tx] is durable when it returns nil,
// or nothing of it is.
//
// Contract of every implementation (the suite in storetest checks it):
//
//   - Tenants are separate. Every row belongs to one tenant and every read takes
//     one; what belongs to another tenant is [ErrNotFound]. The only reads across
//     tenants are [Store.Unfinished] and [Store.Expired], which give ids alone.
//   - Entries, events, trace and usage are written once and never changed.
//   - A Tx with a [Fence] commits only if the run's epoch is the fence's.
//   - At most one run of a session is running or paused: a Tx that would make a
//     second one is refused with [ErrSessionBusy].
//   - Of a [Cluster] a run is one node's at a time: a claim is refused while another
//     node has its lease, and raises the epoch.
//   - Reads see every committed Tx (read your writes, across handles).
//   - The store never looks inside State, Body, Data and other raw payloads and
//     never learns the run machine's types.
package store
