// Package ollama is the adapter for models behind Ollama's own API (/api/chat), over
// net/http. What it has beyond the OpenAI-compatible one of the same server: the size of
// the context, how long a model stays loaded, thinking that can be turned off, and a
// prompt that does not fit is an error.
//
// Beyond the promises of package model:
//
//   - the server is asked not to cut the prompt, nor to shift it while it answers, without
//     a word: what does not fit is an error of class overflow, and agentd compacts;
//   - a stream is complete when a line said done. An error in the middle is an error;
//   - before thinking is asked for, and before an image is sent, the server is asked once
//     what the model can do (/api/show). Images are replaced by a text for a model that
//     sees none; a model that can not think is not asked to;
//   - how many tokens the model is loaded with is asked behind a reply (/api/ps) where
//     Options.NumCtx does not say it; see [Provider.Window];
//   - the API has no tool choice: without tools to call (ToolChoiceNone) none are sent, and
//     the other choices are the model's own. Neither has it a switch for one call at a
//     time;
//   - an answer in JSON is asked for in words where there are tools: a format, which
//     binds all that a model says, would leave it no way to call one;
//   - replies have no ids. Message.ResponseID is when the server says it began.
//
// Wire format: https://docs.ollama.com/api/chat, and the types of
// github.com/ollama/ollama/api v0.17.4.
package ollama
