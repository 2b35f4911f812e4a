package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/event"
	"agentd/internal/engine"
	"agentd/internal/server"
	"agentd/message"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

func say(r *fakeRun, words ...string) {
	for _, w := range words {
		r.emit(event.TextDelta, &event.Delta{Text: w})
	}
}

func step(r *fakeRun, toolCalls int, words ...string) {
	r.emit(event.StepStarted, &event.Step{})
	say(r, words...)
	r.emit(event.StepCompleted, &event.Step{ToolCalls: toolCalls})
}

// chats are the transcripts: how a run is played, what the client asks.
var chats = []struct {
	name string
	play func(*fakeRun)
	// body is the request without model and messages.
	body string
}{
	{"text", func(r *fakeRun) { step(r, 0, "Hel", "lo \"you\"\n"); r.end(event.RunCompleted, "stop", "", nil) }, ``},
	{"usage", func(r *fakeRun) { step(r, 0, "Hi"); r.end(event.RunCompleted, "stop", "", nil) }, `,"stream_options":{"include_usage":true}`},
	{"thinking", func(r *fakeRun) {
		r.emit(event.StepStarted, &event.Step{})
		r.emit(event.ThinkingDelta, &event.Delta{Text: "Hm."})
		say(r, "Yes.")
		r.end(event.RunCompleted, "stop", "", nil)
	}, ``},
	{"server tools", func(r *fakeRun) {
		step(r, 1, "Let me ", "look.")
		r.emit(event.ToolStarted, &event.Tool{ToolCallID: "c1", Name: "look"})
		r.emit(event.ToolCompleted, &event.Tool{ToolCallID: "c1", Name: "look", Result: "a cat"})
		step(r, 1)
		step(r, 0, "It is ", "a cat.")
		r.end(event.RunCompleted, "stop", "It is a cat.", nil)
	}, ``},
	{"repeated text", func(r *fakeRun) {
		step(r, 1, "I will ", "look at the first picture.")
		step(r, 1, "I will look", " at the first picture.")
		step(r, 0, "I will look at the first picture. ", "It is ", "a cat.")
		r.emit(event.FinalText, &event.Text{Text: "I will look at the first picture. It is a cat."})
		r.end(event.RunCompleted, "stop", "I will look at the first picture. It is a cat.", nil)
	}, ``},
	{"client tools", func(r *fakeRun) {
		step(r, 2, "I need the weather.")
		r.mu.Lock()
		r.view.ToolCalls = []message.Block{message.Call("c1", "weather", json.RawMessage(`{"city":"Oslo"}`)), message.Call("c2", "weather", nil)}
		r.mu.Unlock()
		r.end(event.RunCompleted, "client_tool_calls", "", nil)
	}, `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]`},
	{"length", func(r *fakeRun) { step(r, 0, "Once upon"); r.end(event.RunCompleted, "length", "", nil) }, `,"max_tokens":2`},
	{"limit", func(r *fakeRun) { step(r, 1, "Looking."); r.end(event.RunCompleted, "max_steps", "", nil) }, ``},
	{"limit without a word", func(r *fakeRun) { step(r, 1); r.end(event.RunCompleted, "max_tool_calls", "", nil) }, ``},
	{"not streamed by the model", func(r *fakeRun) {
		step(r, 0, "The ans")
		r.emit(event.FinalText, &event.Text{Text: "The answer."})
		r.end(event.RunCompleted, "stop", "The answer.", nil)
	}, ``},
	{"only an output", func(r *fakeRun) { r.end(event.RunCompleted, "stop", "All done.", nil) }, ``},
	{"approval", func(r *fakeRun) {
		step(r, 1, "I will delete x.")
		r.ask(r.view.ID+".i1", "approval", "May I delete x?", true)
	}, ``},
	{"two people", func(r *fakeRun) {
		step(r, 3)
		r.ask(r.view.ID+".i1", "question", "Which one?", false)
		r.ask(r.view.ID+".i2", "uncertain", "It may have happened.", false)
		r.mu.Lock()
		r.view.Status = "paused_checkpoint"
		r.mu.Unlock()
		r.emit(event.ToolCompleted, &event.Tool{ToolCallID: "c3", Name: "look"})
	}, ``},
	{"answered before", func(r *fakeRun) {
		step(r, 1)
		r.ask(r.view.ID+".i1", "approval", "May I?", false)
		r.mu.Lock()
		answered := *r.view.Interrupts[0]
		answered.Status = "answered"
		r.view.Interrupts = []*engine.InterruptView{&answered}
		r.mu.Unlock()
		r.emit(event.CheckpointResolved, &event.Checkpoint{InterruptID: r.view.ID + ".i1"})
		step(r, 0, "Done.")
		r.end(event.RunCompleted, "stop", "", nil)
	}, ``},
	{"retry", func(r *fakeRun) {
		r.emit(event.StepStarted, &event.Step{})
		say(r, "The answer is for")
		r.emit(event.ModelRetry, &event.Retry{Attempt: 2, Class: "truncated"})
		say(r, "The answer is 42.")
		r.end(event.RunCompleted, "stop", "", nil)
	}, ``},
	{"retry before a word", func(r *fakeRun) {
		r.emit(event.StepStarted, &event.Step{})
		r.emit(event.ModelRetry, &event.Retry{Attempt: 2, Class: "overloaded"})
		say(r, "42.")
		r.end(event.RunCompleted, "stop", "", nil)
	}, ``},
	{"restart between steps", func(r *fakeRun) {
		step(r, 1, "Looking.")
		r.emit(event.RunResumed, &event.Resumed{Reason: "restart"})
		step(r, 0, "Found.")
		r.end(event.RunCompleted, "stop", "", nil)
	}, ``},
	{"failed", func(r *fakeRun) {
		r.emit(event.StepStarted, &event.Step{})
		r.end(event.RunFailed, "model_error", "", &event.Error{Kind: "rate_limited", Message: "openai (m): too many requests"})
	}, ``},
	{"no budget", func(r *fakeRun) {
		r.emit(event.StepStarted, &event.Step{})
		r.end(event.RunFailed, "max_cost", "", &event.Error{Kind: "max_cost", Message: "The limit of max_cost for the tenant is $5, of which $5 are used"})
	}, ``},
	{"failed after a word", func(r *fakeRun) {
		step(r, 1, "I look.")
		r.end(event.RunFailed, "tool_failed", "", &event.Error{Kind: "tool_failed", Message: "a tool call failed", Hint: "Look at the events"})
	}, `,"stream_options":{"include_usage":true}`},
	{"broken off by the provider", func(r *fakeRun) {
		r.emit(event.StepStarted, &event.Step{})
		say(r, "The answer is")
		r.end(event.RunFailed, "model_error", "", &event.Error{Kind: "overloaded", Message: "openai (m): overloaded", Hint: "Try later"})
	}, `,"stream_options":{"include_usage":true}`},
	{"internal fault", func(r *fakeRun) {
		r.end(event.RunFailed, "internal", "", &event.Error{Kind: "internal", Message: "row 7 of table secrets is broken"})
	}, ``},
	{"internal fault after a word", func(r *fakeRun) {
		step(r, 1, "I look.")
		r.end(event.RunFailed, "internal", "", &event.Error{Kind: "internal", Message: "row 7 of table secrets is broken"})
	}, ``},
	{"refused", func(r *fakeRun) {
		r.end(event.RunFailed, "model_error", "", &event.Error{Kind: "refused", Message: "the provider refused"})
	}, ``},
	{"refused after a word", func(r *fakeRun) {
		step(r, 0, "Well,")
		r.end(event.RunFailed, "model_error", "", &event.Error{Kind: "refused", Message: "the provider refused"})
	}, ``},
	{"cancelled", func(r *fakeRun) { r.end(event.RunCancelled, "cancelled", "", nil) }, ``},
	{"cancelled after a word", func(r *fakeRun) { step(r, 0, "Well,"); r.end(event.RunCancelled, "cancelled", "", nil) }, ``},
	{"JSON", func(r *fakeRun) {
		step(r, 1, "I look at it.")
		step(r, 0, `{"animal":`, `"cat"}`)
		r.emit(event.FinalText, &event.Text{Text: `{"animal":"cat"}`})
		r.end(event.RunCompleted, "stop", "", nil)
	}, `,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}`},
}

func TestChatTranscripts(t *testing.T) {
	for _, c := range chats {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, &server.Options{Now: func() time.Time { return time.Unix(1_767_323_045, 0) }})
			a.e.script("agent", c.play)
			var log bytes.Buffer
			for _, stream := range []bool{false, true} {
				body := fmt.Sprintf(`{"model":"agent","messages":[{"role":"user","content":"go"}],"stream":%v%s}`, stream, c.body)
				r := a.do("POST", "/v1/chat/completions", body, "X-Request-Id: req")
				fmt.Fprintf(&log, "POST /v1/chat/completions\n%s\n\n%d %s\n", body, r.status, r.header.Get("Content-Type"))
				for _, h := range []string{"X-Agentd-Run-Id", "X-Agentd-Session-Id", "X-Should-Retry"} {
					if v := r.header.Get(h); v != "" {
						fmt.Fprintf(&log, "%s: %s\n", h, v)
					}
				}
				fmt.Fprintf(&log, "\n%s\n", r.body)
				a.doc.openai(t, r)
			}
			file := filepath.Join("testdata", "chat", strings.ReplaceAll(c.name, " ", "_")+".txt")
			if *update {
				if err := os.WriteFile(file, log.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: run go test -update", err)
			}
			if !bytes.Equal(want, log.Bytes()) {
				t.Errorf("%s differs. Got:\n%s\nWant:\n%s", file, log.Bytes(), want)
			}
			select {
			case c := <-a.e.cancelled:
				t.Errorf("a run whose answer was read to its end was cancelled: %s", c)
			default:
			}
		})
	}
}

// TestChatWaitsForASubagentsPerson: the interrupt belongs to a run below.
func TestChatWaitsForASubagentsPerson(t *testing.T) {
	a := start(t, nil)
	a.e.script("child", func(r *fakeRun) { r.ask("i9", "approval", "May the child?", true) })
	a.e.script("parent", func(r *fakeRun) {
		child, err := r.e.Start(r.ctx, engine.StartRequest{Profile: "child", Input: []message.Block{message.Text("x")}})
		if err != nil {
			t.Error(err)
		}
		c := r.e.wait(child.ID)
		for range r.e.Watch(r.ctx, engine.Ref{ID: child.ID}, 0) {
			if c.get().Status == "paused_checkpoint" {
				break
			}
		}
		r.mu.Lock()
		r.view.Usage = message.Usage{Input: 400, Output: 70} // the child has used nothing
		r.mu.Unlock()
		r.emit(event.CheckpointRequired, &event.Checkpoint{InterruptID: "i9", RunID: child.ID})
	})
	r := a.do("POST", "/v1/chat/completions", `{"model":"parent","messages":[{"role":"user","content":"go"}]}`)
	if !strings.Contains(string(r.body), "May the child?") || !strings.Contains(string(r.body), "POST /runs/r1/input") || !strings.Contains(string(r.body), `"prompt_tokens":400,"completion_tokens":70,`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestChatRequestBecomesARun(t *testing.T) {
	a := start(t, nil)
	r := a.do("POST", "/v1/chat/completions", `{"model":"echo@1.0.0","messages":[
		{"role":"system","content":"Be brief."},{"role":"developer","content":[{"type":"text","text":"Be kind."}]},
		{"role":"user","content":"What is this?"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"oops"}}]},
		{"role":"tool","tool_call_id":"c1","content":"a cat"},{"role":"tool","tool_call_id":"c2","content":""},
		{"role":"assistant","content":"A cat."},
		{"role":"user","content":[{"type":"text","text":"And this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],
		"temperature":0.5,"top_p":0.9,"stop":["END"],"max_tokens":5,"max_completion_tokens":7,"reasoning_effort":"low","seed":1,"presence_penalty":0.5,"frequency_penalty":0,
		"tools":[{"type":"function","function":{"name":"look","description":"d"}}],"tool_choice":{"type":"function","function":{"name":"look"}},
		"user":"u1","metadata":{"chat":"7"},"response_format":{"type":"json_object"},"parallel_tool_calls":false,"store":false,"x_unknown":{"a":1}}`)
	if r.status != 200 || r.header.Get("X-Agentd-Ignored") != "seed, presence_penalty" {
		t.Fatalf("%d %v %s", r.status, r.header, r.body)
	}
	got := a.e.lastStart()
	raw, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "chat_request.json", raw)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs. Got:\n%s\nWant:\n%s", file, got, want)
	}
}

func TestChatBadRequests(t *testing.T) {
	a := start(t, nil)
	user := `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		body, param, code string
		// free: the schema can not say it.
		free bool
	}{
		{`{"messages":[{"role":"user","content":"x"}]}`, "model", "missing_required_parameter", true},
		{`{"model":"echo"}`, "messages", "invalid_value", false},
		{`{"model":"echo","messages":[]}`, "messages", "invalid_value", false},
		{`{"model":"echo","messages":"x"}`, "messages", "invalid_value", false},
		{`{"model":5,` + user + `}`, "model", "invalid_value", false},
		{`{"model":"echo","messages":[{"role":"system","content":"x"}]}`, "messages", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"robot","content":"x"}]}`, "messages[0].role", "invalid_value", false},
		{`{"model":"echo","messages":[{"role":"function","content":"x"}]}`, "messages[0].role", "unsupported_parameter", false},
		{`{"model":"echo","messages":[{"role":"user"}]}`, "messages[0].content", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"user","content":""}]}`, "messages[0].content", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"user","content":7}]}`, "messages[0].content", "invalid_value", false},
		{`{"model":"echo","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "messages[0].content[0].type", "unsupported_parameter", true},
		{`{"model":"echo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`, "messages[0].content[0].image_url.url", "unsupported_parameter", true},
		{`{"model":"echo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,***"}}]}]}`, "messages[0].content[0].image_url.url", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:text/html;base64,AAAA"}}]}]}`, "messages[0].content[0].image_url.url", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,AAAA"}}]},{"role":"user","content":"x"}]}`, "messages[0].content[0].image_url.url", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"system","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`, "messages[0].content[0]", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c","content":"x"}]}`, "messages[1].tool_call_id", "invalid_value", true},
		{`{"model":"echo","messages":[{"role":"assistant","tool_calls":[{"type":"function"}]}]}`, "messages[0].tool_calls[0]", "invalid_value", true},
		{`{"model":"echo",` + user + `,"n":2}`, "n", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"logprobs":true}`, "logprobs", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"top_logprobs":2}`, "top_logprobs", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"logit_bias":{"5":1}}`, "logit_bias", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"modalities":["text","audio"]}`, "modalities", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"audio":{}}`, "audio", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"functions":[]}`, "functions", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"function_call":"auto"}`, "function_call", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"web_search_options":{}}`, "web_search_options", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"temperature":3}`, "temperature", "invalid_value", false},
		{`{"model":"echo",` + user + `,"temperature":"hot"}`, "temperature", "invalid_value", false},
		{`{"model":"echo",` + user + `,"top_p":-0.1}`, "top_p", "invalid_value", false},
		{`{"model":"echo",` + user + `,"max_tokens":0}`, "max_tokens", "invalid_value", false},
		{`{"model":"echo",` + user + `,"max_completion_tokens":-1}`, "max_completion_tokens", "invalid_value", false},
		{`{"model":"echo",` + user + `,"stop":5}`, "stop", "invalid_value", false},
		{`{"model":"echo",` + user + `,"stop":[""]}`, "stop", "invalid_value", false},
		{`{"model":"echo",` + user + `,"stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"]}`, "stop", "invalid_value", false},
		{`{"model":"echo",` + user + `,"reasoning_effort":"extreme"}`, "reasoning_effort", "invalid_value", false},
		{`{"model":"echo",` + user + `,"response_format":{"type":"xml"}}`, "response_format.type", "invalid_value", false},
		{`{"model":"echo",` + user + `,"response_format":{"type":"json_schema"}}`, "response_format.json_schema.schema", "invalid_value", true},
		{`{"model":"echo",` + user + `,"tools":[{"type":"custom"}]}`, "tools[0].type", "unsupported_parameter", false},
		{`{"model":"echo",` + user + `,"tools":[{"type":"function","function":{"name":"a b"}}]}`, "tools[0].function.name", "invalid_value", false},
		{`{"model":"echo",` + user + `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]}`, "tools[1].function.name", "invalid_value", true},
		{`{"model":"echo",` + user + `,"tools":[{"type":"function","function":{"name":"a","parameters":[]}}]}`, "tools[0].function.parameters", "invalid_value", false},
		{`{"model":"echo",` + user + `,"tool_choice":"maybe"}`, "tool_choice", "invalid_value", true},
		{`{"model":"echo",` + user + `,"tool_choice":{"type":"allowed_tools"}}`, "tool_choice", "unsupported_parameter", true},
		{`{"model":"echo",` + user + `,"tool_choice":{"type":"function","function":{"name":"a"}}}`, "tool_choice", "invalid_value", true},
		{`{"model":"echo",` + user + `,"metadata":"x"}`, "metadata", "invalid_value", false},
		{`{"model":"echo",` + user, "", "invalid_value", true},
		{``, "", "invalid_value", true},
	} {
		r := a.do("POST", "/v1/chat/completions", c.body)
		var got struct {
			Error struct{ Message, Type, Param, Code string }
		}
		if err := json.Unmarshal(r.body, &got); err != nil {
			t.Fatal(err)
		}
		if r.status != 400 || got.Error.Param != c.param || got.Error.Code != c.code || got.Error.Type != "invalid_request_error" || got.Error.Message == "" {
			t.Errorf("%s\n%d %s", c.body, r.status, r.body)
		}
		a.doc.openai(t, r)
		if !c.free && a.request("POST", "/v1/chat/completions", c.body) == nil {
			t.Errorf("the document's schema accepts %s", c.body)
		}
	}
	if len(a.e.started) != 0 {
		t.Errorf("%d runs were started", len(a.e.started))
	}
}

func TestModels(t *testing.T) {
	a := start(t, nil)
	r := a.do("GET", "/v1/models", "")
	a.doc.openai(t, r)
	if data := r.json(t)["data"].([]any); len(data) != 3 {
		t.Errorf("%s", r.body)
	}
	for id, status := range map[string]int{"echo": 200, "echo@1.0.0": 200, "agentd-task": 200, "echo@2": 404, "nope": 404} {
		r := a.do("GET", "/v1/models/"+id, "")
		a.doc.openai(t, r)
		if r.status != status {
			t.Errorf("%s: %d", id, r.status)
		}
	}
	if r := a.do("GET", "/v1/nope", ""); r.status != 404 || !strings.Contains(string(r.body), `"type":"invalid_request_error"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestUnknownModel(t *testing.T) {
	ask := `{"model":"gpt-x","messages":[{"role":"user","content":"hi"}]}`
	a := start(t, nil)
	if r := a.do("POST", "/v1/chat/completions", ask); r.status != 404 || !strings.Contains(string(r.body), `"code":"model_not_found"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	a = start(t, &server.Options{DefaultProfile: "echo"})
	if r := a.do("POST", "/v1/chat/completions", ask); r.status != 200 || r.json(t)["model"] != "echo" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := a.do("POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}]}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	a = start(t, &server.Options{DefaultProfile: "gone"})
	if r := a.do("POST", "/v1/chat/completions", ask); r.status != 404 || !strings.Contains(string(r.body), "gone") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestTasks(t *testing.T) {
	title := "### Task:\nGenerate a concise, 3-5 word title.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
	for _, c := range []struct {
		name, model, prompt, header string
		stream                      bool
		task                        bool
	}{
		{"header", "manual", "hi", "title_generation", false, true},
		{"header, streamed", "manual", "hi", "query_generation", true, true},
		{"header not filled in", "echo", "hi", "{{TASK}}", false, false},
		{"header empty", "echo", "hi", "", false, false},
		{"model", "agentd-task", "hi", "", false, true},
		{"title template", "manual", title, "", false, true},
		{"title template, streamed", "echo", title, "", true, false},
		{"autocomplete template", "manual", "### Task:\nYou are an autocompletion system.\n### Context:\n<chat_history>\n</chat_history>", "", false, true},
		{"emoji template", "manual", "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret", "", false, true},
		{"documents are a conversation", "echo", "### Task:\nRespond to the user query using the provided context.\n<context>\n</context>\nhi", "", false, false},
		{"a person's task", "echo", "### Task: write a poem", "", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, &server.Options{TaskProfile: "echo"})
			body, err := json.Marshal(map[string]any{"model": c.model, "stream": c.stream, "max_tokens": 4, "messages": []any{map[string]any{"role": "user", "content": c.prompt}}})
			if err != nil {
				t.Fatal(err)
			}
			r := a.do("POST", "/v1/chat/completions", string(body), "X-Agentd-Task: "+c.header)
			if r.status != 200 {
				t.Fatalf("%d %s", r.status, r.body)
			}
			got := a.e.lastStart()
			if got.Profile != "echo" || got.Overrides.NoTools != c.task || !got.Ephemeral || got.Overrides.MaxOutputTokens != 4 {
				t.Errorf("%+v", got)
			}
		})
	}
	// Without a task profile the asked one answers, without its tools.
	a := start(t, nil)
	a.do("POST", "/v1/chat/completions", `{"model":"echo","messages":[{"role":"user","content":"hi"}]}`, "X-Agentd-Task: tags_generation")
	if got := a.e.lastStart(); got.Profile != "echo" || !got.Overrides.NoTools {
		t.Errorf("%+v", got)
	}
	a.do("POST", "/v1/chat/completions", `{"model":"agentd-task","messages":[{"role":"user","content":"hi"}]}`)
	if got := a.e.lastStart(); got.Profile != "" {
		t.Errorf("%+v", got)
	}
}
