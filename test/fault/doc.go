// Package fault drives real runs into every fault that the simulator and a
// hostile MCP server have, crossed with what people and restarts do meanwhile,
// and checks afterwards that the run has ended or waits for a person, that its
// session takes the next message, and that nothing is left: no goroutine, no
// process, no socket.
package fault
