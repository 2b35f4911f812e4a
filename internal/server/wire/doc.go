// Package wire is what all HTTP faces share: reading JSON strictly, writing it,
// and streaming server-sent events.
//
// It promises:
//
//   - A body over its limit is refused before it is read, and the client gets to
//     see the answer. A body that is not what it must be is answered with what
//     was wrong, where (line and column, or field), and what to do.
//   - A stream never slows its producer's source beyond a bounded buffer, sends
//     what is ready in one write, says something at least every heartbeat, and
//     does not wait longer than the write timeout for a client that has stopped
//     reading.
//   - Nothing of a request's body or credentials is logged here.
package wire
