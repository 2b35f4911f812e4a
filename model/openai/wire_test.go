package openai

import (
	"strconv"
	"strings"

	"agentd/message"
	"agentd/model/modeltest"
)

const overflowBody = `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`

// chatWire is the stream of Chat Completions in pieces.
func chatWire() *modeltest.Wire {
	chunk := func(members string) string {
		return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk",` + members + "}\n\n"
	}
	delta := func(members string) string { return chunk(`"choices":[{"index":0,"delta":{` + members + `}}]`) }
	finish := func(reason string) string {
		return chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]`)
	}
	usage := func(output string) string {
		return chunk(`"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":` + output + `}`)
	}
	const done = "data: [DONE]\n\n"
	return &modeltest.Wire{
		Begin: delta(`"role":"assistant","content":""`),
		Text: func(pieces ...string) (s string) {
			for _, p := range pieces {
				s += delta(`"content":` + p)
			}
			return s
		},
		Call: func(pieces ...string) string {
			s := delta(`"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]`)
			for _, p := range pieces {
				s += delta(`"tool_calls":[{"index":0,"function":{"arguments":` + p + `}}]`)
			}
			return s
		},
		Empty:      delta("") + delta(`"content":"","reasoning_content":"","tool_calls":[]`) + delta(`"content":null,"tool_calls":null`) + chunk(`"choices":[]`) + "data: {}\n\n",
		Unknown:    "event: brand_new\ndata: {\"brand\":[\"new\"]}\n\n" + delta(`"brand_new":{"content":"no"}`) + "retry: 7\n\n",
		KeepAlive:  ": keepalive\n\n",
		End:        finish("stop") + usage("7") + done,
		NoEnd:      usage("7") + done,
		Overloaded: `data: {"error":{"message":"The engine is currently overloaded","type":"overloaded_error"}}` + "\n\n",
		Ends: []modeltest.Ending{
			{Name: "length, stop", Stream: finish("length") + finish("stop") + usage("7") + done, Stop: message.StopLength},
			{Name: "stop, length", Stream: finish("stop") + finish("length") + usage("7") + done, Stop: message.StopLength},
			{Name: "the same twice", Stream: finish("stop") + finish("stop") + usage("7") + done, Stop: message.StopEnd},
		},
		Counts: []modeltest.Ending{
			{Name: "before", Stream: usage("7") + finish("stop") + done, Prompt: 20, Output: 7},
			{Name: "behind", Stream: finish("stop") + usage("7") + done, Prompt: 20, Output: 7},
			{Name: "both", Stream: usage("1") + finish("stop") + usage("7") + done, Prompt: 20, Output: 7},
			{Name: "null behind", Stream: usage("7") + finish("stop") + chunk(`"choices":[],"usage":null`) + done, Prompt: 20, Output: 7},
		},
		Overflow: overflowBody,
	}
}

// responsesWire is the stream of Responses in pieces.
func responsesWire() *modeltest.Wire {
	event := func(kind, members string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + `",` + members + "}\n\n"
	}
	count := func(n int) string {
		return `"usage":{"input_tokens":` + strconv.Itoa(n+13) + `,"output_tokens":` + strconv.Itoa(n) + `}`
	}
	completed := event("response.completed", `"response":{"id":"resp_1","status":"completed",`+count(7)+`}`)
	incomplete := event("response.incomplete", `"response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},`+count(7)+`}`)
	join := func(pieces []string) string {
		all := ""
		for _, p := range pieces {
			all += p[1 : len(p)-1]
		}
		return `"` + all + `"`
	}
	return &modeltest.Wire{
		Begin: event("response.created", `"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}`),
		Text: func(pieces ...string) string {
			s := event("response.output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","content":[]}`)
			for _, p := range pieces {
				s += event("response.output_text.delta", `"output_index":0,"item_id":"msg_1","delta":`+p)
			}
			return s + event("response.output_item.done", `"output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":`+join(pieces)+`}]}`)
		},
		Call: func(pieces ...string) string {
			s := event("response.output_item.added", `"output_index":1,"item":{"id":"fc_1","type":"function_call","arguments":"","call_id":"call_1","name":"read"}`)
			for _, p := range pieces {
				s += event("response.function_call_arguments.delta", `"output_index":1,"item_id":"fc_1","delta":`+p)
			}
			return s + event("response.output_item.done", `"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"read","arguments":`+join(pieces)+`}`)
		},
		Empty: event("response.output_text.delta", `"output_index":0,"item_id":"msg_1","delta":""`) + event("response.in_progress", `"response":{}`) + "data: {}\n\n",
		Unknown: event("response.brand_new", `"output_index":0,"item":{"type":"x"},"delta":"no"`) +
			event("response.output_item.added", `"output_index":7,"item":{"id":"x_1","type":"brand_new_item"}`),
		KeepAlive:  ": keepalive\n\n",
		End:        completed,
		NoEnd:      "data: [DONE]\n\n",
		Overloaded: event("error", `"code":"engine_overloaded","message":"The engine is currently overloaded","param":null`),
		Ends: []modeltest.Ending{
			{Name: "length, stop", Stream: incomplete + completed, Stop: message.StopLength},
			{Name: "stop, length", Stream: completed + incomplete, Stop: message.StopEnd},
		},
		Counts: []modeltest.Ending{
			{Name: "before", Stream: event("response.in_progress", `"response":{"id":"resp_1",`+count(1)+`}`) + completed, Prompt: 20, Output: 7},
			{Name: "behind", Stream: completed + event("response.in_progress", `"response":{"id":"resp_1",`+count(1)+`}`), Prompt: 20, Output: 7},
			{Name: "before only", Stream: event("response.in_progress", `"response":{"id":"resp_1",`+count(1)+`}`) + strings.Replace(completed, ","+count(7), "", 1)},
		},
		Overflow: overflowBody,
	}
}
