package sim

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// requestHeader implements protocol.
func (ollama) requestHeader() string { return "X-Request-Id" }

// streamType is the type of a stream, which is no stream of events.
func (ollama) streamType() string { return "application/x-ndjson" }

// open implements protocol.
func (ollama) open(req *request, rep *script.Reply, e *exchange) writer {
	return &ollStream{req: req, rep: rep, e: e, head: ollHead(nil, req, rep)}
}

// ollHead begins a line. The time of a reply is made of its id, so that the same request
// gets the same bytes.
func ollHead(b []byte, req *request, rep *script.Reply) []byte {
	n, _ := strconv.ParseUint(rep.ID, 16, 64)
	b = script.AppendQuote(append(b, `{"model":`...), req.Model)
	return fmt.Appendf(b, `,"created_at":"2026-01-01T00:00:00.%09dZ","message":{"role":"assistant","content":`, n%1_000_000_000)
}

// ollStream writes a reply as lines.
type ollStream struct {
	req  *request
	rep  *script.Reply
	e    *exchange
	head []byte
	call int
}

// line sends what a piece says: its text, and what else the message has.
func (o *ollStream) line(text, more string) error {
	b := script.AppendQuote(append(o.e.buf, o.head...), text)
	o.e.buf = append(append(b, more...), "},\"done\":false}\n"...)
	return o.e.send()
}

// Start implements script.Sink; the API has no mark for it.
func (o *ollStream) Start() error { return nil }

// BlockStart implements script.Sink.
func (o *ollStream) BlockStart(int) error { return nil }

// Delta implements script.Sink. Calls come whole.
func (o *ollStream) Delta(i int, piece string) error {
	switch o.rep.Blocks[i].Type {
	case message.BlockThinking:
		return o.line("", string(script.AppendQuote([]byte(`,"thinking":`), piece)))
	case message.BlockText:
		return o.line(piece, "")
	}
	return nil
}

// BlockEnd implements script.Sink.
func (o *ollStream) BlockEnd(i int) error {
	if o.rep.Blocks[i].Type != message.BlockToolCall {
		return nil
	}
	call := append(ollCall([]byte(`,"tool_calls":[`), &o.rep.Blocks[i], o.call), ']')
	o.call++
	return o.line("", string(call))
}

// ollCall appends a call. Ollama reads what a model writes, and so arguments that are no
// JSON are none.
func ollCall(b []byte, bl *message.Block, index int) []byte {
	args := bl.Arguments
	if !gjson.ValidBytes(args) {
		args = []byte("{}")
	}
	b = script.AppendQuote(append(b, `{"id":`...), bl.ID)
	b = strconv.AppendInt(append(b, `,"function":{"index":`...), int64(index), 10)
	b = script.AppendQuote(append(b, `,"name":`...), bl.Name)
	return append(append(append(b, `,"arguments":`...), args...), "}}"...)
}

// ollEnd appends what the last line counts. What was cached is not told.
func ollEnd(b []byte, rep *script.Reply) []byte {
	reason := "stop"
	if rep.Stop == message.StopLength {
		reason = "length"
	}
	b = append(append(append(b, `},"done":true,"done_reason":"`...), reason...), '"')
	b = append(b, `,"total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":`...)
	b = strconv.AppendInt(b, rep.Usage.Prompt(), 10)
	b = strconv.AppendInt(append(b, `,"prompt_eval_duration":342546000,"eval_count":`...), rep.Usage.Output, 10)
	return append(b, `,"eval_duration":4535599000}`...)
}

// Finish implements writer. A local model has no safety system; what it refuses ends.
func (o *ollStream) Finish(bool) error {
	o.e.buf = append(ollEnd(append(append(o.e.buf, o.head...), `""`...), o.rep), '\n')
	return o.e.send()
}

// Fail implements writer.
func (o *ollStream) Fail(e *apiError) error {
	o.e.buf = append(ollama{}.envelope(o.e.buf, e, ""), '\n')
	return o.e.send()
}

// Garbage implements writer.
func (o *ollStream) Garbage() error {
	o.e.buf = append(o.e.buf, "{\"model\":\"half a li\n"...)
	return o.e.send()
}

// body implements protocol.
func (ollama) body(b []byte, req *request, rep *script.Reply) []byte {
	text, thinking, calls := "", "", 0
	list := []byte(`,"tool_calls":[`)
	for i := range rep.Blocks {
		switch bl := &rep.Blocks[i]; bl.Type {
		case message.BlockText:
			text += bl.Text
		case message.BlockThinking:
			thinking += bl.Text
		default:
			if calls > 0 {
				list = append(list, ',')
			}
			list = ollCall(list, bl, calls)
			calls++
		}
	}
	b = script.AppendQuote(ollHead(b, req, rep), text)
	if thinking != "" {
		b = script.AppendQuote(append(b, `,"thinking":`...), thinking)
	}
	if calls > 0 {
		b = append(append(b, list...), ']')
	}
	return ollEnd(b, rep)
}

// envelope implements protocol.
func (ollama) envelope(b []byte, e *apiError, _ string) []byte {
	return append(script.AppendQuote(append(b, `{"error":`...), e.message), '}')
}

// fault implements protocol.
func (ollama) fault(f *script.Fault, req *request) *apiError {
	e := &apiError{status: f.Status, retryAfter: f.RetryAfter, message: f.Message}
	switch f.Kind {
	case script.FaultRateLimited:
		return e.or(http.StatusTooManyRequests, "too many requests")
	case script.FaultOverloaded:
		return e.or(http.StatusServiceUnavailable, "server busy, please try again.  maximum pending requests exceeded")
	case script.FaultOverflow:
		return e.or(http.StatusBadRequest, "the input length exceeds the context length")
	case script.FaultAuth:
		return e.or(http.StatusUnauthorized, "unauthorized")
	case script.FaultQuota:
		return e.or(http.StatusTooManyRequests, "you have reached your weekly usage limit, please upgrade to continue")
	}
	return e.or(http.StatusInternalServerError, fmt.Sprintf("an error was encountered while running the model %s", req.Model))
}

// noModel implements protocol.
func (ollama) noModel(id string) *apiError {
	return &apiError{status: http.StatusNotFound, message: fmt.Sprintf("model '%s' not found", id)}
}

// noRoute implements protocol.
func (ollama) noRoute(string, string) *apiError {
	return &apiError{status: http.StatusNotFound, message: "404 page not found"}
}

// tooLarge implements protocol.
func (ollama) tooLarge(int64) *apiError {
	return &apiError{status: http.StatusRequestEntityTooLarge, message: "http: request body too large"}
}

// models implements protocol: the answer of /api/tags.
func (o ollama) models(b []byte, ids []string) []byte {
	b = append(b, `{"models":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = o.model(b, id)
	}
	return append(b, "]}"...)
}

// running is the answer of /api/ps: every model is loaded, with ollWindow tokens.
func (o ollama) running(ids []string) []byte {
	b := []byte(`{"models":[`)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = script.AppendQuote(append(b, `{"name":`...), id)
		b = script.AppendQuote(append(b, `,"model":`...), id)
		b = append(b, `,"size":0,"digest":"",`+ollDetails+`,"expires_at":"2099-01-01T00:00:00Z","size_vram":0,"context_length":`+ollWindow+`}`...)
	}
	return append(b, "]}"...)
}

// ollWindow is how many tokens the simulator's models are loaded with, and made for.
const ollWindow = "131072"

const ollDetails = `"details":{"parent_model":"","format":"gguf","family":"sim","families":["sim"],"parameter_size":"0B","quantization_level":"F16"}`

// model implements protocol.
func (ollama) model(b []byte, id string) []byte {
	b = script.AppendQuote(append(b, `{"name":`...), id)
	b = script.AppendQuote(append(b, `,"model":`...), id)
	return append(b, `,"modified_at":"2026-01-01T00:00:00Z","size":0,"digest":"",`+ollDetails+`}`...)
}

// show answers POST /api/show: a model of the simulator can do everything.
func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	p := ollama{}
	body, err := s.read(w, r)
	if err != nil {
		s.unreadable(w, r, p, err)
		return
	}
	id := gjson.Get(body, "model").String()
	switch {
	case !gjson.Valid(body) || id == "":
		s.fail(w, r, p, ollBad("model is required"))
	case s.player(id) == nil:
		s.fail(w, r, p, p.noModel(id))
	default:
		s.write(w, http.StatusOK, []byte(`{"modelfile":"","parameters":"","template":"{{ .Prompt }}",`+ollDetails+
			`,"model_info":{"general.architecture":"sim","sim.context_length":`+ollWindow+`},"capabilities":["completion","tools","thinking","vision"],"modified_at":"2026-01-01T00:00:00Z"}`))
	}
}
