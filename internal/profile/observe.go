package profile

import (
	"fmt"
	"slices"
	"strings"

	"agentd/internal/redact"
)

// collected is whether traces and logs have somewhere to go.
func (l *loader) collected() bool {
	t := &l.config.Settings.Telemetry
	env, ok := l.opts.Env("OTEL_EXPORTER_OTLP_ENDPOINT")
	return t.OTLPEndpoint != "" || t.File != "" || ok && env != ""
}

// destinations checks where logs go.
func (l *loader) destinations(d *decoder, list string, to []string) {
	for i, name := range to {
		key := fmt.Sprintf("%s[%d]", list, i)
		file, isFile := strings.CutPrefix(name, "file:")
		switch {
		case d.wrong(key):
		case name == "otel" && !l.collected():
			d.fail(d.at(key), key, "there is no collector", "name telemetry.otlp_endpoint or telemetry.file in agentd.yaml")
		case !slices.Contains([]string{"stdout", "stderr", "otel"}, name) && (!isFile || file == ""):
			d.fail(d.at(key), key, "is not a destination", "one of: stderr, stdout, otel, file:PATH")
		}
	}
}

// observability checks the server's log and telemetry.
func (l *loader) observability(d *decoder) {
	s := &l.config.Settings
	l.destinations(d, "log.destinations", s.Log.Destinations)
	for i, kind := range s.Log.PII {
		key := fmt.Sprintf("log.pii[%d]", i)
		if !d.wrong(key) && !slices.Contains(redact.Kinds(), kind) {
			d.fail(d.at(key), key, "is not a kind of personal data", "one of: "+strings.Join(redact.Kinds(), ", "))
		}
	}
	for i, f := range s.Log.RedactFields {
		key := fmt.Sprintf("log.redact_fields[%d]", i)
		if _, err := redact.New(&redact.Options{Fields: []string{f}}); err != nil && !d.wrong(key) {
			d.fail(d.at(key), key, "is not a name", "write the field's name")
		}
	}
	if s.Telemetry.TraceEnabled && !l.collected() {
		d.warn("telemetry.trace_enabled", "the traces go nowhere", "name telemetry.otlp_endpoint or telemetry.file")
	}
}
