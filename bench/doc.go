// Command bench measures how fast agentd is and what it needs, beside another
// agent runtime on the same machine in the same minutes, and prints a table with
// the limits that agentd promises to keep. See README.md for how each number is
// taken. It makes no assertions: a slow machine is not a bug.
package main
