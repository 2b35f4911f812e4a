// Package openai is the adapter for models behind the Chat Completions API:
// OpenAI's own and the many servers that speak it.
//
// The official SDK builds, authenticates and sends the request; this package
// writes the body and reads the stream, because doing both by reflection costs
// more than everything else on the way. Beyond the promises of package model:
//
//   - the messages of a request that was sent once are the same bytes in the
//     next one, so that the provider's prompt cache keeps working;
//   - thinking is sent back under the field name it came in
//     (reasoning_content, reasoning or reasoning_text), which is kept in the
//     signature of its block;
//   - a stream is complete when a finish_reason came. What other servers leave
//     out is tolerated: [DONE], usage, roles, indexes and ids of tool calls.
//
// Wire format: https://platform.openai.com/docs/api-reference/chat-streaming.
package openai
