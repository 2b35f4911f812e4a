// Package modeltest holds every model adapter to the promises of package model.
//
// [Run] plays wire fixtures (the provider's own stream format, one file per
// scenario) through a server on loopback and checks what the adapter makes of
// them: the grammar of the events, content, usage, errors, cuts at every byte,
// cancelling, and the bytes of its requests. An adapter's test gives a [Harness]
// and its testdata folder; the scenarios mean the same for all adapters.
//
// [Handoffs] has every provider take conversations over from every other one.
package modeltest
