// Package anthropic is the adapter for models behind the Messages API:
// Anthropic's own and servers that speak it.
//
// The official SDK builds, authenticates and sends the request; this package
// writes the body and reads the stream, because doing both by reflection costs
// more than everything else on the way. Beyond the promises of package model:
//
//   - the messages of a request that was sent once are the same bytes in the
//     next one, except for the cache mark, which moves on with the last message;
//   - thinking blocks go back as they came, text and signature, withheld ones
//     included; thinking of another model goes back as text, because a signature
//     is only worth something to the model that made it;
//   - results of one batch of tool calls are one user message;
//   - at most four cache marks: the first parts of the system prompt that ask for
//     one, and the last message;
//   - a stream is complete when message_stop came.
//
// Wire format: https://platform.claude.com/docs/en/build-with-claude/streaming.
package anthropic
