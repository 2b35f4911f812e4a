package run

import (
	"testing"

	"agentd/message"
)

// BenchmarkStep measures one step of a run that goes round and round: a reply
// with two calls, two verdicts, two results.
func BenchmarkStep(b *testing.B) {
	reply := &message.Message{Role: message.RoleAssistant, Usage: &message.Usage{Input: 1000, Output: 50},
		Content: []message.Block{message.Text("look"), message.Call("call_1", "read", nil), message.Call("call_2", "read", nil)}}
	result := message.ToolResult("", "", false, message.Text("file"))
	inputs := []Input{ModelDone{Message: reply},
		Verdict{CallID: "call_1", Decision: Allow, Effect: "read"}, Verdict{CallID: "call_2", Decision: Allow, Effect: "read"},
		ToolDone{CallID: "call_2", Message: &result}, ToolDone{CallID: "call_1", Message: &result}}
	tr, err := Step(New("r", "s"), Started{EntryBase: "01jd3q5y8k7wz", Prompt: []string{"u"}})
	if err != nil {
		b.Fatal(err)
	}
	s := tr.State
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		tr, err := Step(s, inputs[n%len(inputs)])
		if err != nil {
			b.Fatal(err)
		}
		s = tr.State
	}
}

// BenchmarkEncode measures the stored form, which is made once for each commit.
func BenchmarkEncode(b *testing.B) {
	s := play(b, "start prompt=u1\nreply a:read b:read c:read\nallow a\nallow b").s
	b.ReportAllocs()
	for b.Loop() {
		s.Encode()
	}
}
