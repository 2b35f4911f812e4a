// Command agentd runs agents: as a server, in the terminal, as one-shot jobs.
package main

import (
	"os"

	"agentd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
