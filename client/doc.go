// Package client is the Go client of agentd's HTTP API.
//
// It promises:
//
//   - Errors are *fault.Error with the kind, the hint and the field that the
//     server gave. A server that can not be reached is of kind Unavailable. Only
//     [Client.Watch] may also give the error of its context.
//   - Nothing is sent twice: requests are not repeated. Start and CreateSession
//     with an IdempotencyKey can be repeated by the caller.
//   - [Client.Watch] survives broken connections and restarts of the server: it
//     goes on where it was, and yields no event and no byte of a delta twice.
//   - The key goes into the Authorization header and nowhere else.
//
// The types here have the JSON of the API. They are the client's own, so that a
// program that only talks to a server does not contain one.
package client
