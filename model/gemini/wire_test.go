package gemini

import (
	"strings"

	"agentd/message"
	"agentd/model/modeltest"
)

// wire is the stream in pieces. Arguments come whole: pieces of them are one.
func wire() *modeltest.Wire {
	chunk := func(members string) string {
		return `data: {` + members + `,"modelVersion":"gemini-3.5-flash","responseId":"resp-1"}` + "\r\n\r\n"
	}
	candidate := func(members string) string { return chunk(`"candidates":[{"index":0,` + members + `}]`) }
	parts := func(list string) string { return candidate(`"content":{"parts":[` + list + `],"role":"model"}`) }
	finish := func(reason string) string { return candidate(`"finishReason":"` + reason + `"`) }
	const usage = `"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":7}`
	const early = `"usageMetadata":{"promptTokenCount":20,"totalTokenCount":20}`
	return &modeltest.Wire{
		Begin: chunk(early),
		Text: func(pieces ...string) (s string) {
			for _, p := range pieces {
				s += parts(`{"text":` + p + `}`)
			}
			return s
		},
		Call: func(pieces ...string) string {
			arguments := ""
			for _, p := range pieces {
				arguments += strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(p[1 : len(p)-1])
			}
			return parts(`{"functionCall":{"name":"read","id":"call_1","args":` + arguments + `}}`)
		},
		Empty:      parts("") + parts(`{"text":""},{}`) + chunk(`"candidates":[]`) + candidate(`"content":null`) + "data: {}\n\n",
		Unknown:    "event: brand_new\ndata: {\"brand\":[\"new\"]}\n\n" + parts(`{"brandNewPart":{"text":"no"}}`) + chunk(`"brandNew":{"text":"no"}`),
		KeepAlive:  ": keepalive\n\n",
		End:        finish("STOP") + chunk(usage),
		NoEnd:      chunk(usage),
		Overloaded: `data: {"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}` + "\r\n\r\n",
		Ends: []modeltest.Ending{
			{Name: "length, stop", Stream: finish("MAX_TOKENS") + finish("STOP") + chunk(usage), Stop: message.StopLength},
			{Name: "stop, length", Stream: finish("STOP") + finish("MAX_TOKENS") + chunk(usage), Stop: message.StopLength},
			{Name: "length, unspecified", Stream: finish("MAX_TOKENS") + finish("FINISH_REASON_UNSPECIFIED") + chunk(usage), Stop: message.StopLength},
			{Name: "the same twice", Stream: finish("STOP") + finish("STOP"), Stop: message.StopEnd},
		},
		Counts: []modeltest.Ending{
			{Name: "before", Stream: chunk(usage) + finish("STOP"), Prompt: 20, Output: 7},
			{Name: "behind", Stream: finish("STOP") + chunk(usage), Prompt: 20, Output: 7},
			{Name: "both", Stream: chunk(early) + finish("STOP") + chunk(usage), Prompt: 20, Output: 7},
		},
		Overflow: `{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`,
	}
}
