// Package proc is the real binary in tests: it builds agentd, starts processes of it,
// reads what they say, stops, wakes, ends and kills them, and follows runs over their
// event streams. It also starts the Temporal development server of test/temporal.
//
// It promises that a process is gone with its test, that what a process said is kept
// (the first and the last of it, a bounded number of bytes), and that a reader checks
// each event against those before it.
package proc
