// Package cli is the command line. Every command writes for people when its
// output is a terminal and JSON when it is not (or with --json), and exits with
//
//	0    done; the run completed
//	1    the run failed, or something went wrong
//	2    wrong usage or configuration
//	3    the run is paused and waits for a person
//	130  cancelled
package cli
