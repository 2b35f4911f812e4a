package agentd

import (
	"os/exec"
	"path"

	"agentd/internal/profile"
)

// Problem is one thing that is wrong with a configuration, and where.
type Problem = profile.Problem

// Settings are the server's own settings (agentd.yaml).
type Settings = profile.Settings

// ReadSettings reads the settings of a configuration folder (empty: the embedded
// one). What is wrong with the folder is left for Open to report.
func ReadSettings(dir string) Settings {
	conf, _ := read(dir, &profile.Options{})
	if conf == nil {
		conf, _ = read("", &profile.Options{})
	}
	return conf.Settings
}

// CheckSettings says what is wrong with a configuration folder's agentd.yaml, or
// with the folder itself; mistakes in profiles and servers are not looked for.
func CheckSettings(dir string) error {
	_, all := read(dir, &profile.Options{})
	var of profile.Problems
	for _, p := range all {
		if path.Base(p.File) == "agentd.yaml" || p.File == dir {
			of = append(of, p)
		}
	}
	return of.Err()
}

func read(dir string, opts *profile.Options) (*profile.Config, profile.Problems) {
	if dir == "" {
		return profile.LoadFS(profile.Embedded(), "embedded configs", opts)
	}
	return profile.Load(dir, opts)
}

// ProfileNames lists the profiles of a configuration folder (empty: the embedded
// one), sorted; those that can be read if not all can.
func ProfileNames(dir string) []string {
	conf, _ := read(dir, &profile.Options{})
	if conf == nil {
		return nil
	}
	return conf.Names()
}

// CheckConfig checks a configuration folder (empty: the embedded one) and lists
// every problem; summary says what there is.
func CheckConfig(dir string) (problems []Problem, summary string) {
	conf, ps := read(dir, &profile.Options{Builtins: builtinNames(nil), LookPath: exec.LookPath})
	if conf != nil {
		summary = conf.String()
		ps = append(ps, unpriced(conf)...)
	}
	return ps, summary
}

// InitConfig writes the embedded configuration to a folder and gives the files'
// names. It overwrites nothing.
func InitConfig(dir string) ([]string, error) { return profile.WriteDefaults(dir) }
