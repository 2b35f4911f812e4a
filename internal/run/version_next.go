//go:build agentd_next

package run

// StateVersion is the version of the stored state as the next agentd would have it: one
// that this agentd can not read. It is for tests of neighbouring versions.
const StateVersion = 2
