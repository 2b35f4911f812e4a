// Package tool is the port to tools: what a tool promises about itself, how a
// call is prepared and what comes back. Built-in tools, MCP tools and tools of
// extensions are all values of [Tool].
//
// A call passes lookup, decoding, coercion and validation (on a copy; all
// errors are listed) before anything decides about it or runs it.
package tool
