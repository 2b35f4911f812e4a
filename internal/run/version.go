//go:build !agentd_next

package run

// StateVersion is the version of the stored state.
const StateVersion = 1
