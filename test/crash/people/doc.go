// Package people kills the real binary, again and again, at moments that nobody
// chose, while people work with it, and then counts what is there. It has no
// code of its own to use.
//
// It promises that after any number of kills
//
//   - a run that was accepted exists and ends, exactly once, with the transcript
//     of a run that nobody disturbed, except for what it says of calls whose
//     outcome nobody knows;
//   - what people said (answers, messages, cancels) and got a receipt for counts;
//   - a tool that must not run twice did not, unless a person asked for it;
//   - readers who go on from the last number they saw miss nothing, see nothing
//     twice, and have the text that is stored;
//   - the database is sound, and tells of a run tomorrow what it tells today;
//   - no process that a killed server started is left.
//
// AGENTD_KILLS is the number of kills (default 200), AGENTD_SEED the seed of the
// moments and of what people do; a test prints the seed it used.
package people
