// Package mcp brings the tools of Model Context Protocol servers into agentd:
// a [Manager] keeps one connection to each configured server and hands out
// their tools as values of tool.Tool. It is the only package that knows the
// protocol's SDK.
//
// What it promises:
//
//   - No server can hold anything up. Connecting, listing and calling are
//     bounded; a server that can not be reached is reported beside the tools
//     of the others and tried again with growing pauses.
//   - No server can fill the memory. A message over the size limit becomes an
//     error of the call that waits for it, floods of notifications are thinned
//     out, and what is not JSON-RPC is dropped with a line in the log.
//   - A call that was cancelled or took too long returns at once, and the
//     server is told, whatever it makes of it. Progress that comes later is
//     dropped.
//   - A call is sent again only if that is safe: after a failure of the
//     transport for tools whose effect is read or idempotent, and for every
//     tool if the request provably never reached the server.
//   - A server's process gets an environment of four variables and what its
//     configuration names. It leads a process group of its own, and the whole
//     group is ended with it. (On systems without process groups, such as
//     Windows, only the process itself is ended.)
//   - What a server says about its own tools is not trusted: hints may make a
//     tool look more dangerous, and less only where the configuration says
//     trust_hints.
//
// Only the tools part of the protocol is used. No client capability is
// advertised, so servers do not ask for roots, sampling or elicitation.
package mcp
