package fault

import (
	"fmt"
	"testing"

	"agentd/event"
)

// modelFaults are the simulator's, each once (the next attempt works) and for good.
var modelFaults = []string{
	"kind: rate_limited, retry_after: 10ms", "kind: rate_limited, retry_after: 1h", "kind: server", "kind: overloaded",
	"kind: overflow", "kind: auth", "kind: quota", "kind: refused", "kind: server, after: 1", "kind: cut", "kind: cut, after: 0", "kind: truncated",
	"kind: stall", "kind: stall, after: 0", "kind: malformed", "kind: slow_first_byte, for: 100ms", "kind: slow_first_byte, for: 10m",
}

// Every fault of a model, in the first step or after a tool, crossed with what
// happens to the run meanwhile.
func TestModelFaults(t *testing.T) {
	cases := map[string]func(t *testing.T){}
	n := 0
	for _, f := range modelFaults {
		for _, phase := range phases {
			for _, times := range []int{0, 1} {
				// The protocols and the place of the fault take turns.
				n++
				provider := []string{"openai", "anthropic"}[n%2]
				at := (n / 2) % 2
				when := []event.Type{event.StepStarted, event.ToolCompleted}[at]
				cases[fmt.Sprintf("%s/times %d/%s/%s step %d", f, times, phase, provider, at+1)] = func(t *testing.T) {
					fault := fmt.Sprintf("    fault: {%s}\n", f)
					if times > 0 {
						fault = fmt.Sprintf("    fault: {%s, times: %d}\n", f, times)
					}
					turns := []string{"  - text: \"I act.\"\n    tool_calls: [{name: act, arguments: {}}]\n", "  - text: \"All of it is done now, every part.\"\n"}
					turns[at] += fault
					w := newWorld(t, provider, turns[0]+turns[1], "works", "read")
					defer w.close()
					w.play(phase, when)
				}
			}
		}
	}
	all(t, cases)
}

// Every way in which an MCP server fails, for tools that may be repeated and tools
// that may not, crossed with what happens to the run meanwhile.
func TestToolFaults(t *testing.T) {
	cases := map[string]func(t *testing.T){}
	for _, mode := range hostileModes {
		for _, phase := range phases {
			for _, effect := range []string{"read", "once"} {
				cases[mode+"/"+phase+"/"+effect] = func(t *testing.T) {
					w := newWorld(t, "openai", "  - text: \"I act.\"\n    tool_calls: [{name: act, arguments: {}}]\n  - text: \"Done.\"\n", mode, effect)
					defer w.close()
					w.play(phase, event.ToolStarted)
				}
			}
		}
	}
	all(t, cases)
}
