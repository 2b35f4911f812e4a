// Package engine drives runs: load, step, commit, perform. It owns everything
// that the pure machine in internal/run must not have: time, concurrency, the
// store, models and tools.
//
// # What it promises
//
//   - An accepted call (Start, Steer, FollowUp, Answer, Cancel) is durable when it
//     returns.
//   - Events are published after the commit that contains them; deltas of a
//     reply, which the reply's own commit contains, after the commit that opened
//     the step. Numbers rise strictly, also across crashes.
//   - Readers never slow a run: one that falls behind is disconnected with
//     [ErrSlowReader] and can go on from the last number it saw.
//   - A run belongs to the engine that claimed its epoch; a stale engine's commits
//     are refused by the store and it lets go of the run.
//   - Runs of one session are driven one after the other, in the order they were
//     accepted; runs of different sessions at the same time.
//   - A run does not depend on who watches it. A run that waits for a person
//     occupies no memory, nor does one that waits for its turn; a run that waits
//     for a child does.
//   - Cancel reaches model streams and tools at once; a tool that does not end
//     within a second is abandoned and its outcome called unknown.
//   - Close is a controlled crash: it writes nothing special, and Recover of the
//     next engine goes on from what is committed.
package engine
