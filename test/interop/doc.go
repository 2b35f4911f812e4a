// Package interop tries agentd against software of others: real clients, real
// MCP servers, conformance kits, and validators of the providers' published
// specifications. It is a module of its own, so that what it needs never reaches
// the product.
//
// It promises:
//
//   - What is tried is the program as it is built: an `agentd serve` process,
//     with `agentd sim` in the place of the models. No provider is called, and
//     nothing leaves the machine.
//   - The versions of the others are exact (go.mod here, package-lock.json in
//     test/npm). What is missing fails with the command that provides it.
//   - Every process listens on 127.0.0.1 with a port of its own, and ends, with
//     all that it started, when its test does.
package interop
