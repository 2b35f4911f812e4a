package agentd

import (
	"agentd/internal/profile"
)

// Problem is one thing that is wrong with a configuration, and where.
type Problem = profile.Problem

// CheckConfig checks a configuration folder (empty: the embedded one) and lists
// every problem; summary says what there is.
func CheckConfig(dir string) (problems []Problem, summary string) {
	opts := &profile.Options{Builtins: builtinNames(nil)}
	var conf *profile.Config
	var ps profile.Problems
	if dir == "" {
		conf, ps = profile.LoadFS(profile.Embedded(), "embedded configs", opts)
	} else {
		conf, ps = profile.Load(dir, opts)
	}
	if conf != nil {
		summary = conf.String()
	}
	return ps, summary
}

// InitConfig writes the embedded configuration to a folder and gives the files'
// names. It overwrites nothing.
func InitConfig(dir string) ([]string, error) { return profile.WriteDefaults(dir) }
