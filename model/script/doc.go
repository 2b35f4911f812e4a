// Package script is a model that follows a script: a [model.Provider] for tests,
// demonstrations and benchmarks, and the script format that the model simulator
// (internal/sim) serves on the providers' real wire formats.
//
// # What it promises
//
//   - The same request gets the same reply and the same ids, in this process or
//     another one, before a crash or after it: a reply depends on the request
//     alone. There is no clock and no randomness in it. The one exception is a
//     fault with `times`, which counts the attempts.
//   - Ids of tool calls are unique within a conversation.
//   - A script that parses has known keys, valid expressions, valid templates and
//     no turn that can not be reached. Every error of [Parse] names the file, the
//     line and the key, and says what to do.
//   - Failures of [Provider.Generate] are typed as those of a real provider.
//
// # How a turn is chosen
//
// A script starts again at each user message (with `restart: never` it goes on
// through the whole conversation). Reply number k is made by looking at the
// request: it holds k assistant messages since the script started. A user message
// that comes after tool results, or after another user message, goes on with the
// turn instead of starting again.
//
// At each step the first turn whose `when` holds and that is not used up answers;
// if there is none, the next turn without `when` does. A turn is used up after
// one step, or after `repeat` steps. When none is left, `fallthrough` answers;
// without it the call fails. Compacting a conversation removes assistant messages,
// and so moves the script back.
//
// # Keys
//
//	name         string    for messages; default: the file's name
//	models       [string]  the model ids it answers; default: any
//	restart      message | never; default message
//	latency      {first, chunk: duration, size: runes}; default of all turns
//	fallthrough  template  the reply when the turns are used up
//	turns:
//	- when       {user, system, result: regexp, tool: name, failed: bool}
//	             all that are given must hold: user is matched against the newest
//	             user text, system against the parts of the system prompt; tool,
//	             result and failed against one tool result since the last reply
//	  thinking   template
//	  text       template
//	  tool_calls [{name, arguments, id}]  arguments: a mapping whose texts are
//	             templates, or one template that is sent as it is
//	  usage      {input, output, cache_read, cache_write, reasoning}: tokens;
//	             default: a token for four bytes
//	  stop       stop | length | toolUse; default: by whether there are tool_calls
//	  latency    as above; default none, and 24 runes a chunk
//	  repeat     int, default 1
//	  fault      {kind, status, retry_after, after, for, times, message}; see [Fault]
//
// # Templates
//
// A template is Go's text/template over [Data] with these functions besides Go's
// own. V is a list of texts, or a text, which counts as the list of its lines.
//
//	lines S            the lines that are not blank
//	head N V, tail N V the first, the last N
//	count V            how many
//	join SEP V, split SEP S, trim S, lower S, upper S, clip N S, default D S
//	find RE S          the first match (its first group, if it has one), or ""
//	findAll RE V       all of them
//	matches RE S, replace RE WITH V
//	keep RE V, drop RE V  the elements that match, that do not
//	sort V, uniq V
//	tally V            [{Key, Count}], most frequent first
//	relative V         paths without the folder that all of them share
//	json PATH S        a value out of JSON, by gjson path
//	quote S            S as a JSON string
//
// A reply obeys the request as a model would: the token limit cuts it, a stop text
// ends it, tool calls are left out where no tool is allowed, and thinking is left
// out where it is turned off.
package script
