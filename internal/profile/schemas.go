package profile

import (
	"io/fs"
	"path"

	"agentd/configs"
)

// Schemas gives the JSON Schemas (draft 2020-12) of the configuration files, by
// file name: agent.schema.json, servers.schema.json, agentd.schema.json.
// Editors use them to complete and check; agentd's own checks are stricter.
// They are made from the structs of this package by its tests.
func Schemas() map[string][]byte {
	out := map[string][]byte{}
	err := fs.WalkDir(configs.Files(), "schema", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		out[path.Base(name)], err = fs.ReadFile(configs.Files(), name)
		return err
	})
	if err != nil {
		panic("profile: the embedded schemas are always there: " + err.Error())
	}
	return out
}
