package anthropic

import (
	"strconv"

	"agentd/message"
	"agentd/model/modeltest"
)

// wire is the stream in pieces.
func wire() *modeltest.Wire {
	event := func(kind, members string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + `"` + members + "}\n\n"
	}
	block := func(index int, start, delta, member string, pieces []string) string {
		at := `,"index":` + strconv.Itoa(index)
		s := event("content_block_start", at+`,"content_block":{`+start+`}`)
		for _, p := range pieces {
			s += event("content_block_delta", at+`,"delta":{"type":"`+delta+`","`+member+`":`+p+`}`)
		}
		return s + event("content_block_stop", at)
	}
	ends := func(reason string) string {
		return event("message_delta", `,"delta":{"stop_reason":"`+reason+`","stop_sequence":null}`)
	}
	const counted = `,"usage":{"output_tokens":7}`
	count := event("message_delta", `,"delta":{"stop_reason":null}`+counted)
	stop := event("message_stop", "")
	return &modeltest.Wire{
		Begin: event("message_start", `,"message":{"id":"msg_01","type":"message","role":"assistant","content":[],"usage":{"input_tokens":20,"output_tokens":1}}`),
		Text: func(pieces ...string) string {
			return block(0, `"type":"text","text":""`, "text_delta", "text", pieces)
		},
		Call: func(pieces ...string) string {
			return block(1, `"type":"tool_use","id":"call_1","name":"read","input":{}`, "input_json_delta", "partial_json", pieces)
		},
		Empty: event("content_block_delta", `,"index":0,"delta":{}`) + event("message_delta", `,"delta":{},"usage":{}`) + "data: {}\n\n",
		Unknown: event("brand_new", `,"index":0,"delta":{"text":"no"}`) + event("content_block_delta", `,"index":0,"delta":{"type":"brand_new_delta","value":"no"}`) +
			event("content_block_start", `,"index":7,"content_block":{"type":"brand_new_block","text":"no"}`) + event("content_block_stop", `,"index":7`),
		KeepAlive:  event("ping", ""),
		End:        ends("end_turn") + count + stop,
		NoEnd:      ends("end_turn") + count,
		Overloaded: event("error", `,"error":{"type":"overloaded_error","message":"Overloaded"}`),
		Ends: []modeltest.Ending{
			{Name: "length, stop", Stream: ends("max_tokens") + ends("end_turn") + count + stop, Stop: message.StopLength},
			{Name: "stop, length", Stream: ends("end_turn") + ends("max_tokens") + count + stop, Stop: message.StopLength},
			{Name: "the same twice", Stream: ends("end_turn") + ends("end_turn") + stop + stop, Stop: message.StopEnd},
		},
		Counts: []modeltest.Ending{
			{Name: "before", Stream: count + ends("end_turn") + stop, Prompt: 20, Output: 7},
			{Name: "behind", Stream: ends("end_turn") + count + stop, Prompt: 20, Output: 7},
			{Name: "behind what ends it", Stream: ends("end_turn") + stop + count, Prompt: 20, Output: 1},
		},
		Overflow: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 345320 tokens > 199999 maximum"}}`,
	}
}
