// Package worker is the part of a process under test that all of them share: it
// reads orders from standard input, one a line, and answers each with one line of
// JSON. So every program that is compared does the same thing, is told so in the
// same way, and measures itself in the same way.
//
// The orders are:
//
//	serial N        N runs, one after the other
//	load W MS       W loops of runs at once for MS milliseconds; each finishes its last
//	memory          collects garbage, gives memory back, and only measures
//	do NAME ARGS…   what only some programs can do
//
// CPU time is user and system time of the whole process, so garbage collection
// and the HTTP client are in it.
package worker
