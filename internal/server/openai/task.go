package openai

import (
	"net/http"
	"strings"

	"agentd/internal/engine"
	"agentd/message"
)

// TaskHeader names the one-shot task that a frontend wants done. Open WebUI
// fills it in for connections that have the header with the value {{TASK}}.
const TaskHeader = "X-Agentd-Task"

// isTask reports whether a request is one of a frontend's own tasks (titles,
// tags, follow-up questions, search queries) rather than part of a conversation.
func isTask(h http.Header, b *chatRequest, c *call) bool {
	switch strings.ToLower(strings.TrimSpace(h.Get(TaskHeader))) {
	case "", "none", "null", "{{task}}": // not filled in
	default:
		return true
	}
	return b.Model == TaskModel || isTaskPrompt(b, c)
}

// isTaskPrompt recognises the prompts that Open WebUI (0.6 to 0.11) sends to the
// chat's own model: one message, not streamed, from its templates. Its prompt
// for retrieved documents starts alike but has no chat history: that is a
// conversation.
func isTaskPrompt(b *chatRequest, c *call) bool {
	if b.Stream || len(b.Tools) > 0 || len(c.start.History) > 0 {
		return false
	}
	m := message.Message{Content: c.start.Input}
	text := strings.TrimSpace(m.Text())
	switch {
	case strings.HasPrefix(text, "### Task:"):
		return strings.Contains(text, "### Chat History:") || strings.Contains(text, "<chat_history>")
	case strings.HasPrefix(text, "Your task is to reflect the speaker's likely facial expression through a fitting emoji."):
		return true
	}
	return false
}

// oneShot makes the run of a task: no tools, no long thoughts.
func (f *Face) oneShot(req *engine.StartRequest) {
	o := &req.Overrides
	o.NoTools, o.ClientTools, o.ToolChoice = true, nil, ""
	if o.Thinking == "" {
		o.Thinking = "off" // a few tokens of output must be enough
	}
	if f.cfg.TaskProfile != "" {
		req.Profile = f.cfg.TaskProfile
	} else if req.Profile == TaskModel {
		req.Profile = f.cfg.DefaultProfile
	}
}
