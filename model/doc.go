// Package model is the port to language models: what a request is, how a reply
// streams, which errors there are, what a model can do and what it costs.
//
// Adapters live in sub-packages and never import each other. They keep these
// promises, which the suite in modeltest checks:
//
//   - Generate returns exactly once, with a complete message or an *[Error].
//   - A stream that ends without its protocol's terminal marker is an error of
//     class [ClassTruncated], never an answer.
//   - Nothing is retried inside an adapter: retries belong to the run.
//   - A cancelled context ends the call within a second, with [ClassCancelled].
//   - A conversation that another model had is taken over: see [Maker.Handoff].
//   - Opaque blocks (signatures, encrypted thinking) are replayed byte for byte.
//   - The same Request gives the same bytes on the wire.
package model
