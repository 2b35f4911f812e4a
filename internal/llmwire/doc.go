// Package llmwire is what the adapters of model providers share: writing JSON
// requests that are the same bytes every time, reading the JSON of a stream
// without reflection, putting a reply together while it grows, classing errors,
// and watching a connection that may go silent.
//
// It knows no provider. Every string it writes is valid UTF-8 without lone
// surrogates; nothing it returns aliases a buffer that will be reused.
package llmwire
