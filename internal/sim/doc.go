// Package sim is a model server for tests, demonstrations and benchmarks: it
// speaks the wire formats of OpenAI's Responses and Chat Completions, at OpenAI's paths
// and at Azure's, of Anthropic's Messages, Google's generateContent and Ollama's chat,
// streamed and not, and answers from scripts (agentd/model/script).
//
// # What it promises
//
//   - The official SDKs accept what it sends. Streams have every field that those
//     need, one chunk a write, and their protocol's terminal marker.
//   - The same request gets the same bytes, whenever and on whatever connection it
//     comes. Two things are remembered, and forgotten by POST /reset: prompt
//     prefixes, if caching is simulated, and the attempts of faults with `times`.
//   - A request that the real service refuses for a common mistake is refused in
//     that service's own words: status, envelope, type, code and param.
//   - Faults happen as on the real wire: an error has the service's envelope,
//     Retry-After and a request id; a broken stream has none of its end.
//   - Nothing outlives its request, and the listener is on a loopback address.
//
// # Endpoints
//
//	POST /v1/responses              OpenAI
//	POST /v1/chat/completions       OpenAI
//	POST /v1/messages               Anthropic
//	POST /v1/messages/count_tokens  Anthropic
//	POST /v1beta/models/ID:streamGenerateContent, :generateContent, :countTokens
//	GET  /v1beta/models, /v1beta/models/ID  Gemini
//	POST /api/chat, /api/show      Ollama
//	GET  /api/tags, /api/version   Ollama
//	GET  /v1/models, /v1/models/ID  the models of the scripts, in the shape of the
//	                                service that the headers belong to
//	GET  /healthz                   200
//	GET  /requests                  the recorded requests, oldest first
//	POST /reset                     forget requests, prefixes and attempts
//
// Azure's paths are /openai/v1/… for the same, and with a dated api-version
// /openai/responses and /openai/deployments/NAME/chat/completions. They want an api-key
// or a bearer token, any.
//
// # Reasoning
//
// Responses keeps nothing: what `store` says is not looked at. Reasoning comes with its
// sealed content if the request includes that, and with a summary if it asks for one.
// What is sent back is checked: the seal, that an item follows it, and that an item which
// had reasoning (its id says so) does not come without.
//
// The header X-Sim-Fault, or the query parameter sim_fault, makes one request fail:
// "rate_limited, retry_after=2s" (see [script.ParseFault]).
//
// # Prompt caching
//
// OpenAI: the longest prefix that an earlier request of the model had, from 1,024
// tokens in steps of 128. Anthropic: prefixes that end at a cache_control mark are
// written; a mark reads the longest prefix written at it or up to 20 blocks before
// it; below 1,024 tokens nothing is cached. Four bytes count as a token, and nothing
// expires. These are the rules of OpenAI's cookbook "Prompt Caching 201" and of the
// page "Prompt caching" of Anthropic's documentation, simplified.
package sim
