package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// sealed is a service that can not open the reasoning it is sent.
type sealed struct{ bodies []string }

func (s *sealed) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.bodies = append(s.bodies, string(body))
	res := &http.Response{StatusCode: 200, Header: http.Header{}}
	text := `data: {"type":"response.completed","response":{"id":"r","output":[{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"ok"}]}],"usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n"
	if strings.Contains(string(body), `"encrypted_content":"`) {
		res.StatusCode = 400
		text = `{"error":{"message":"The encrypted content gAAA... could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`
	}
	res.Body = io.NopCloser(strings.NewReader(text))
	return res, nil
}

// Reasoning can be opened by the organisation alone that it was made for: one with another
// key, or another resource at Azure, goes on without it.
func TestReasoningOfAnotherKey(t *testing.T) {
	s := &sealed{}
	p, err := New(Config{Options: &Options{Client: &http.Client{Transport: s}}})
	if err != nil {
		t.Fatal(err)
	}
	reply := message.Message{Role: message.RoleAssistant, API: APIResponses, Provider: "openai", Model: "gpt-5.4", StopReason: message.StopEnd, Content: []message.Block{
		{Type: message.BlockThinking, Text: "hm", Signature: `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`}, {Type: message.BlockText, Text: "Hello.", Signature: "msg_1"}}}
	req := &model.Request{Model: "gpt-5.4", Scratch: &model.Scratch{}, Messages: []message.Message{message.User("hi"), reply, message.User("and?")}}
	for i, want := range []int{2, 3} { // it is found out once
		m, err := p.Generate(t.Context(), req, nil)
		if err != nil || m.Text() != "ok" || len(s.bodies) != want {
			t.Fatalf("call %d: %+v, %v; %d requests", i, m, err, len(s.bodies))
		}
		sent := s.bodies[len(s.bodies)-1]
		if !strings.Contains(sent, "Hello.") || strings.Contains(sent, "rs_1") || strings.Contains(sent, "msg_1") {
			t.Errorf("sent %s", sent)
		}
	}
}
