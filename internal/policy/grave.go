package policy

import (
	"slices"

	"agentd/tool"
)

// Grave reports whether only a person's own word lets a call of the tool run: what
// deletes, runs commands or is marked dangerous is not approved by the passing of
// time, nor by what was approved before.
func Grave(spec *tool.Spec) bool {
	return slices.ContainsFunc(spec.Classes, func(c string) bool { return c == "delete" || c == "shell" || c == "dangerous" })
}
