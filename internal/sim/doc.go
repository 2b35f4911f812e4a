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
// Four bytes count as a token. Prefixes expire by [Options.Now]; a use keeps them for as
// long again. What the services document, as of November 2026:
//
//   - Anthropic: prefixes that end at a cache_control mark are written, for five minutes
//     or an hour (ttl); a mark reads the longest prefix written at it or at one of the 19
//     positions before it, where calls in a row, and results in a row, are one position.
//     Tools come before the system prompt, and that before messages; tool_choice,
//     thinking, effort and whether there are images at all belong to the messages. The
//     least size is 512, 1,024, 2,048 or 4,096 tokens, by model. Models that read the
//     thoughts of earlier turns no more do not count them. More than four marks, marks on
//     thoughts, unknown ttls and an hour after five minutes are refused.
//   - OpenAI before GPT-5.6: the longest prefix that an earlier request of the model had,
//     from 1,024 tokens in steps of 128, for five minutes and never longer than an hour,
//     or for a day (prompt_cache_retention, and GPT-5.5). Requests with another
//     prompt_cache_key are on another machine.
//   - OpenAI since GPT-5.6: what ends with the newest message that is not the model's is
//     written (cache_write_tokens), for 30 minutes, and read where it ends; 20 earlier ends
//     are looked at. Explicit breakpoints are not simulated.
//   - Gemini (its own wire, or a model whose name begins so): as OpenAI before GPT-5.6, from 2,048 tokens
//     (2.5) or 4,096. Five minutes are the simulator's own: Gemini names no time.
//   - Ollama: it says nothing of what it keeps, and charges nothing.
//
// Machines that overflow with more than some 15 requests a minute are not simulated: which
// requests those are is not documented.
package sim
