package openai

import (
	"encoding/json"
	"errors"
	"testing"

	"agentd/fault"
	"agentd/message"
)

// FuzzDecodeCall holds that any body is either understood or refused as an error
// of the request, and that what is understood can be started.
func FuzzDecodeCall(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"model":"m","messages":[{"role":"user","content":"x"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],"stop":["a"],"n":1}`,
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{"}}]},{"role":"tool","tool_call_id":"c","content":"y"}]}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"user":"u","metadata":{"a":1}}`,
		`{"messages":[{"role":"system","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`, `{"messages":null,"stop":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, _, err := decodeCall(raw)
		if err != nil {
			var own *Error
			if !errors.As(err, &own) && fault.KindOf(err) != fault.Invalid {
				t.Errorf("%T %v", err, err)
			}
			return
		}
		if len(c.start.Input) == 0 && len(c.start.History) == 0 {
			t.Errorf("nothing to do: %s", raw)
		}
		for _, m := range append(c.start.History, message.Message{Content: c.start.Input}) {
			for i := range m.Content {
				if err := m.Content[i].Validate(); err != nil {
					t.Error(err)
				}
			}
		}
		if _, err := json.Marshal(c.start); err != nil {
			t.Error(err)
		}
	})
}
