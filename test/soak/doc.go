// Package soak lives with the real binary for a while: "agentd serve" on a store in
// a file, "agentd sim" as a model that fails, a hostile MCP server, and people and
// programs of every kind. First the server is left alone, and what it holds must
// stay flat and be given back; then it is killed every few seconds. All along, and
// at the end with "agentd doctor", nothing acknowledged may be lost and nothing
// unsafe repeated.
//
// AGENTD_SOAK says how long (default 2m), AGENTD_SEED repeats the random choices of
// a run of the test.
package soak
