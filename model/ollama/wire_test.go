package ollama

import (
	"strings"

	"agentd/message"
	"agentd/model/modeltest"
)

// wire is the stream in pieces. Arguments come whole: pieces of them are one.
func wire() *modeltest.Wire {
	line := func(members string) string {
		return `{"model":"qwen3","created_at":"2026-11-21T12:00:00.123456789Z",` + members + "}\n"
	}
	says := func(members string) string {
		return line(`"message":{"role":"assistant",` + members + `},"done":false`)
	}
	const counted = `,"prompt_eval_count":20,"eval_count":7`
	done := func(reason, members string) string {
		return line(`"message":{"role":"assistant","content":""},"done_reason":"` + reason + `","done":true` + members)
	}
	return &modeltest.Wire{
		Lines: true,
		Begin: says(`"content":""`),
		Text: func(pieces ...string) (s string) {
			for _, p := range pieces {
				s += says(`"content":` + p)
			}
			return s
		},
		Call: func(pieces ...string) string {
			arguments := ""
			for _, p := range pieces {
				arguments += strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(p[1 : len(p)-1])
			}
			return says(`"content":"","tool_calls":[{"id":"call_1","function":{"name":"read","arguments":` + arguments + `}}]`)
		},
		Empty:      says(`"content":""`) + says(`"content":null,"thinking":"","tool_calls":[]`) + "{}\n" + line(`"message":null,"done":false`),
		Unknown:    `{"brand_new":["x"]}` + "\n" + says(`"brand_new":{"content":"no"}`),
		KeepAlive:  "\n",
		End:        done("stop", counted),
		NoEnd:      line(`"message":{"role":"assistant","content":""},"done":false` + counted),
		Overloaded: `{"error":"server busy, please try again.  maximum pending requests exceeded"}` + "\n",
		Ends: []modeltest.Ending{
			{Name: "length, stop", Stream: done("length", counted) + done("stop", counted), Stop: message.StopLength},
			{Name: "stop, length", Stream: done("stop", counted) + done("length", counted), Stop: message.StopEnd},
		},
		Counts: []modeltest.Ending{
			{Name: "before", Stream: line(`"done":false`+counted) + done("stop", ""), Prompt: 20, Output: 7},
			{Name: "behind", Stream: done("stop", counted) + line(`"done":false,"prompt_eval_count":1,"eval_count":1`), Prompt: 20, Output: 7},
		},
		Overflow: `{"error":"the input length exceeds the context length"}`,
	}
}
