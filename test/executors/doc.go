// Package executors tests agentd on a real Temporal server, which it builds
// (test/temporal/cmd/temporaldev) and starts as a process: the conformance suite of
// executors, and what happens when the server or a node goes away. It has no code to
// use.
package executors
