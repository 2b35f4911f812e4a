// Package openai is the face for clients of OpenAI's Chat Completions: every
// call is a run.
//
// It promises:
//
//   - `model` names a profile, or profile@version. The answer is the run's
//     text; texts of steps before the last are part of it. Tools of the server
//     never appear as the client's tool calls; tools that the client declares
//     are handed back to it and end the run.
//   - What was sent is what OpenAI's own documents describe: a first chunk with
//     the role, an index everywhere, exactly one finish_reason out of stop,
//     length, tool_calls and content_filter, a usage chunk if it was asked for,
//     [DONE]. Heartbeats are comments. Nothing is added to the protocol but the
//     widespread reasoning_content.
//   - A failure before anything was sent is an HTTP error in OpenAI's shape. A
//     stop of the agent after that (a limit, a failed tool, a cancel) is said in
//     the text and ends with stop: clients answer a broken stream by asking, and
//     paying, again. Where the model's provider failed, or the server itself, the
//     text is half an answer and must not be taken for one: an error chunk,
//     {"error": …} and [DONE], ends the stream without a finish reason, and SDKs
//     raise it.
//   - Every call brings its whole history and gets a session of its own, which is
//     ephemeral: listed apart, and deleted some time after its run.
//   - A run ends with its client: disconnecting cancels it. With an
//     Idempotency-Key it goes on for a short window, so that a retry joins it.
//   - A run that waits for a person says so, and how to answer; the call ends.
//   - Requests for what can not be done are refused with the parameter's name.
//     Sampling hints that have no effect are named in X-Agentd-Ignored.
package openai
