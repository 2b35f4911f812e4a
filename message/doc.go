// Package message is the vocabulary that every other package speaks: what a
// person, a model and a tool say to each other, and what it cost.
//
// A [Message] is provider-agnostic. Opaque provider state (thinking
// signatures, encrypted reasoning) travels in [Block.Signature] and is replayed
// byte for byte, never interpreted. The JSON form of a message is its stored
// form: field names and meanings are stable, unknown roles survive a round trip.
//
// The package imports the standard library only and holds no state.
package message
