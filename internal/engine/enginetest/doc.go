// Package enginetest is the conformance suite of executors: what decides where and when
// runs are driven must not change what they do.
//
// It promises that each scenario runs on an engine that is alone and on the nodes that
// the caller makes, and that the transcripts, the events and the journals of the two are
// the same. Scenarios speak to the first node and to the last one in turns, so an
// executor that works at one node alone does not pass. They use real time and end
// within seconds.
package enginetest
