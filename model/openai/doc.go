// Package openai is the adapter for models behind OpenAI's two APIs for replies,
// Responses and Chat Completions: OpenAI's own, Azure's ([Azure]), and the many servers
// that speak Chat. [Default] says which of the two is spoken where nothing is said.
//
// The official SDK builds, authenticates and sends the request; this package
// writes the body and reads the stream, because doing both by reflection costs
// more than everything else on the way. Beyond the promises of package model:
//
//   - the messages of a request that was sent once are the same bytes in the
//     next one, so that the provider's prompt cache keeps working;
//   - nothing is kept at the provider: Responses is told not to store, its
//     reasoning comes encrypted, is kept in the signature of its block and goes
//     back byte for byte, to the model it came from and to no other. A service that can
//     not open it, because another organisation's key or resource sealed it, is asked
//     once more without;
//   - in Chat, thinking is sent back under the field name it came in
//     (reasoning_content, reasoning or reasoning_text), which is kept in the
//     signature of its block;
//   - a stream of Responses is complete when response.completed or
//     response.incomplete came, one of Chat when a finish_reason came. What other
//     servers leave out is tolerated: [DONE], usage, roles, indexes and ids of tool
//     calls, events of items;
//   - stop texts that an API does not take (Responses none, Chat four, and none with models
//     that reason) end the text here.
//
// Wire formats: https://platform.openai.com/docs/api-reference/responses-streaming and
// https://platform.openai.com/docs/api-reference/chat-streaming.
package openai
