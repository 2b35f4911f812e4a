// Package run is the run machine: a pure function from a state and an input to
// the next state, what to write, what to do and what to tell.
//
//	Step(State, Input) (Transition, error)
//
// The package has no clock, randomness, I/O, goroutines or map iteration. Times
// arrive in inputs; ids are derived from the run's id and counters, so the same
// inputs give the same ids. Verdicts of policies and hooks are inputs, so a
// replay never asks again. docs/run-machine.md has the diagram.
//
// The whole control state is small (ids, counters, phases, never message
// bodies) and is persisted after every transition. There is no fold on recovery.
//
// # Invariants
//
// FuzzStep and the tests hold the machine to these:
//
//  1. Step never panics and never drops an input silently: it returns a
//     transition or an *[IllegalError] that prints the last transitions.
//  2. After an error the state is unchanged; inputs and states are never aliased.
//  3. A run that ended stays ended, has no open effect and no open interrupt, and
//     emitted exactly one terminal event, its last.
//  4. At any moment a live run has an open effect, waits for a person, or is
//     queued: it is never stuck.
//  5. Every tool call of a committed reply gets exactly one result entry, in
//     source order along the parent chain, whatever order calls end in; only
//     calls handed back to the client have none. With it exactly one
//     tool_completed or tool_failed is told, also of a call that never started.
//  6. Every effect is emitted after the write that reserves the ids of its result.
//  7. A tool call of a reply that was cut by its length is never executed.
//  8. A call starts only after every call of its batch has its verdict; in a
//     sequential batch at most one runs at a time.
//  9. Queued input is consumed once, oldest first, and is either in the session
//     or handed back when the run ends.
//  10. After a cancel no queue is polled, no new model or tool call starts.
//  11. A `once` call whose outcome is not known is never started again without a
//     person's word.
//  12. The leaf only moves forward along the parent chain, never past a gap.
//  13. Overflow compacts at most once per reply and is never a plain retry. Ahead of a
//     call that may be too large it is compacted at most once as well, and not where
//     the call closes an answer, nor soon after one that failed there, which is told once.
//     A compaction has an entry, after which the run goes on,
//     or changes nothing.
//  14. Status is paused_checkpoint exactly when only people are awaited, by the run
//     itself or by the runs below it.
//  15. What people are asked below a run is told as it is, each interrupt once,
//     and its end once.
//  16. The reply to a model call that closes a turn is the turn's last, and none of
//     its calls runs. If there is none, the turn ends all the same, and not in
//     failure.
//  17. A run that was asked to roll back and wrote anything ends with one entry
//     after where the session stood, which is the leaf; no other run has one. This
//     is the exception to 12.
//  18. An interrupt with an expiry has its timer; when that fires it is decided as
//     declared, grave calls never by approval, and no answer is taken any more.
//  19. A captured call is recorded once, with an id of its own, and never started.
//  20. A run with pots makes no model call without a reservation, settles each once,
//     in the step that learns how the call ended, and holds nothing once it ended.
//  21. A person is asked for more only where that was declared, of one limit at a
//     time, and never by an autonomous run; nobody's silence allows it.
//  22. For one user message people are asked for at most MaxApprovals approvals of
//     calls; a call beyond that is not started.
//  23. A turn has at most one nudge, ahead of its end and with too few calls. If the
//     model does not answer it, the answer that it had stands.
//  24. A call gets an earlier result only if an equal call of the turn had it, and no
//     call that may change something, message or answer came since.
//  25. A call that was asked of somebody else is waited for after a crash, and started
//     by nobody: a once call that is lost there is in doubt like one that a crash
//     interrupted.
//  26. A turn's answer is asked for in another form at most once, where it has not
//     the one that was asked for, and ahead of its end. If the model does not answer
//     that, the answer that it had stands.
package run
