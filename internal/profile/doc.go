// Package profile reads agentd's configuration: agent profiles
// (agents/*.yaml), MCP servers (mcp/servers.yaml, mcp.json) and the settings of
// the server (agentd.yaml).
//
// It promises that
//
//   - everything that is wrong is listed at once, each as a [Problem] with file,
//     line, column, key, what is wrong and what to do;
//   - nothing is guessed: an unknown key, a wrong type, a value out of range and
//     a missing environment variable are errors, never defaults;
//   - a key that is accepted but has no effect yet says so (a notice);
//   - values from the environment never appear in a problem, and [Secret] values
//     never in a log, in JSON or in an error;
//   - the same files and environment give the same configuration and the same
//     [Profile.Hash].
//
// The Go structs are the only source of the configuration's shape: keys, types,
// defaults and limits are their tags, descriptions are their comments. The JSON
// Schemas for editors and the tables of docs/configuration.md are made from
// them and tests hold all three together.
//
// The package keeps no state and starts nothing.
package profile
