// Command agentd runs agents: as a server, in the terminal, as one-shot jobs.
package main

import (
	"os"
	_ "time/tzdata" // schedules have time zones also where the system knows none

	"agentd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
