package agentd

import (
	"errors"

	"agentd/internal/logs"
)

// rotation bounds log files.
func (o *observation) rotation() logs.FileOptions {
	l := &o.settings.Log
	return logs.FileOptions{MaxBytes: int64(l.MaxSizeMB) << 20, Keep: l.MaxFiles}
}

// LogFiles is how many log files the runtime writes, the one of telemetry included.
func (rt *Runtime) LogFiles() int {
	n := len(rt.observation.files)
	if rt.observation.settings.Telemetry.File != "" && rt.observation.telemetry != nil {
		n++
	}
	return n
}

// ReopenLogs goes on in the files that are at the paths of the log files by now: for
// programs that move them away.
func (rt *Runtime) ReopenLogs() error {
	var errs []error
	for _, f := range rt.observation.files {
		errs = append(errs, f.Reopen())
	}
	if t := rt.observation.telemetry; t != nil {
		errs = append(errs, t.Reopen())
	}
	return errors.Join(errs...)
}
