package profile

import (
	"io/fs"

	"agentd/configs"
)

// Schemas gives the JSON Schemas (draft 2020-12) of the configuration files, by
// file name: agent.schema.json, servers.schema.json, agentd.schema.json.
// Editors use them to complete and check; agentd's own checks are stricter.
// They are made from the structs of this package by its tests.
func Schemas() (map[string][]byte, error) {
	dir, err := fs.Sub(configs.Files(), "schema")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(dir, "*.json")
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(names))
	for _, name := range names {
		if out[name], err = fs.ReadFile(dir, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
