// Package server is the HTTP side of agentd: the native API of runs and, in a
// package per face, the protocols of other clients. It translates and
// authenticates, nothing else; everything it knows it asks of an [Engine].
//
// It promises:
//
//   - The native API is what openapi.json says, and that document is served.
//     Requests are read strictly; errors say what was wrong, where, and what to do.
//   - Events are replayed from any number and then followed live. A stream that
//     ends early says where to go on. Disconnecting never hurts a run that was
//     started natively; a face's run ends with its client.
//   - It listens on loopback only, unless remote access is allowed and callers
//     are authenticated; Host and Origin are checked, so that web pages can not
//     reach it through a browser.
//   - The access log has neither bodies nor credentials.
//   - Shutdown lets requests finish within a grace period and tells streams
//     where to resume.
package server
