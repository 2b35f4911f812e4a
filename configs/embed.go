// Package configs holds the configuration that serves when there is no configs/
// folder, and that `agentd config init` writes out. It promises to be loadable
// without problems on a machine where nothing is installed or configured.
package configs

import (
	"embed"
	"io/fs"
)

//go:embed agentd.yaml agents/*.yaml mcp/*.yaml schema/*.json
var files embed.FS

// Files gives the folder: agentd.yaml, agents/, mcp/, schema/.
func Files() fs.FS { return files }
