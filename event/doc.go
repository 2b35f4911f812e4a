// Package event is what a run tells the world: a numbered, typed stream that
// can be replayed from the store and followed live.
//
// # Ordering
//
// Events of one run are totally ordered by [Event.Seq], which rises by at least
// one from event to event. What decides something (a step, a call's start and
// end, a checkpoint, the end) is published after the commit that contains it.
// What is merely under way (deltas, tool input, output and progress) is published
// as it comes and is part of a later commit. Deltas are numbered by
// position: a delta whose text has n bytes and ends at Seq covers the numbers
// Seq-n+1 to Seq. A stored delta may therefore stand for many live ones, and a
// reader who has seen part of it is given exactly the rest (see [After]).
//
// A run ends with exactly one terminal event ([Type.Terminal]).
//
// Every tool call of a reply ends with exactly one tool_completed or tool_failed,
// whether it started or not: who shows a call from its tool_input_started on is told
// when to stop. Exceptions are void or over as a whole: calls of a reply that
// run_resumed, model_retry or model_fallback made void, calls of a reply that a
// terminal event broke off, and calls handed back to the client with the run's end.
//
// After a crash numbers never fall back: they go on above the highest number
// that could have been seen. A run_resumed, model_retry or model_fallback event tells
// readers to drop the partial text of the current step.
//
// The wire form (version 1) is stable: types and fields are added, never
// renamed or removed.
package event
