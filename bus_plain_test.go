//go:build !nats

package agentd_test

import (
	"strings"
	"testing"

	"agentd"
	"agentd/fault"
	"agentd/internal/store/postgres/pgtest"
)

// A program without NATS says so, and what to do.
func TestNATSIsNotInEveryProgram(t *testing.T) {
	configs := write(t, map[string]string{"agentd.yaml": "cluster: {bus: nats}\n", "agents/talk.yaml": "profile_name: talk\nprimary_model: {provider: script, model: m, script: talk.yaml}\n", "talk.yaml": "turns:\n- text: Good day.\n"})
	_, err := agentd.Open(t.Context(), agentd.Config{Data: pgtest.Start(t, "fsync = off").NewURL(), Configs: configs, Workspace: t.TempDir()})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(fault.HintOf(err), "-tags nats") {
		t.Errorf("%v (%s)", err, fault.HintOf(err))
	}
}
