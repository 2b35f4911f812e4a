package mcp

import (
	"errors"
	"testing"
	"time"

	"agentd/tool"
)

// Who has to know gets told which failed calls may have happened: those that were
// sent and got no answer that says so.
func TestWhichCallsAreInDoubt(t *testing.T) {
	for mode, doubt := range map[string]bool{"dies": true, "never answers": true, "wrong result": true, "huge, id first": true, "fails": false, "works": false} {
		t.Run(mode, func(t *testing.T) {
			cfg, _ := child(t, mode)
			cfg.Timeouts.Call = 200 * time.Millisecond
			if mode == "dies" || mode == "huge, id first" {
				cfg.Timeouts.Call = 30 * time.Second
			}
			tools, _ := one(t, cfg, nil)
			r, err := tools["act"].Run(background(t), call(`{}`))
			var lost *tool.InDoubtError
			if errors.As(err, &lost) != doubt || (err == nil) == doubt {
				t.Errorf("%+v, %v", r, err)
			}
			if doubt && lost.Error() != lost.Err.Error() {
				t.Errorf("%v", lost)
			}
		})
	}
}
