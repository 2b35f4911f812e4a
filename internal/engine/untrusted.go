package engine

import (
	"encoding/json"
	"strings"
	"unicode"

	"agentd/internal/memory"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// named is the user that a client named for a run; "" where the API key stands for
// one: an application's key is not a person.
func named(row *store.Run) string {
	if strings.HasPrefix(row.User, callerPrefix) {
		return ""
	}
	return row.User
}

// untrusted is whether what a call says may have been put there by somebody else than
// the person who is served: outputs of tools were before the model in this run; or the
// run is a subagent's, whose task another model wrote; or words of the call stand in
// something that was read earlier and that no person has said. It is a function of the
// conversation up to the reply that holds the call.
func (d *driver) untrusted(callID string, args json.RawMessage) bool {
	if d.spec.Depth > 0 {
		return true
	}
	msgs := d.conv.messages
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == message.RoleAssistant && calls(&msgs[i], callID) {
			msgs = msgs[:i]
			break
		}
	}
	for i := range msgs {
		if m := &msgs[i]; session.Retold(m) && i < len(d.conv.origins) && d.conv.origins[i].own {
			return true // it may stand for what tools gave
		}
		if m := &msgs[i]; m.Role == message.RoleToolResult && i < len(d.conv.origins) && d.conv.origins[i].own && !d.tools.trusted(m.ToolName) {
			return true
		}
	}
	return d.quotes(msgs, args)
}

// doubtful is whether a call that is about to be made is untrusted and no person has
// looked at it. It is asked for tools that make a difference alone: the conversation
// may be long.
func (d *driver) doubtful(eff *run.CallTool, args json.RawMessage) bool {
	_, spec, ok := d.tools.set.Lookup(eff.Name)
	if !ok || spec.Untrusted == "" {
		return false
	}
	for i := range d.state.Calls {
		// Nobody's silence is an agreement to such a call: it is grave.
		if c := &d.state.Calls[i]; c.ID == eff.CallID && c.Interrupt != "" {
			return false
		}
	}
	return d.untrusted(eff.CallID, args)
}

func calls(m *message.Message, id string) bool {
	for _, c := range m.ToolCalls() {
		if c.ID == id {
			return true
		}
	}
	return false
}

// trusted is whether a tool's results are the words of people or of the operator.
func (b *toolbox) trusted(name string) bool {
	_, spec, ok := b.set.Lookup(name)
	return ok && (spec.Trusted || spec.Kind == "ask" || spec.Kind == "plan")
}

// quoted is how many words in a row make a quotation; fewer do where there are no
// more. One word alone says nothing.
const quoted = 4

// quotes is whether words of the arguments, so many in a row, stand in a result of a
// tool or in what an application attached, and in nothing that a person wrote.
func (d *driver) quotes(msgs []message.Message, args json.RawMessage) bool {
	var read, said strings.Builder
	for i := range msgs {
		for _, b := range msgs[i].Content {
			if b.Type != message.BlockText {
				continue
			}
			switch {
			case msgs[i].Role == message.RoleUser && b.Context == prompt.Skill: // as load_skill's results
			case msgs[i].Role == message.RoleToolResult && d.tools.trusted(msgs[i].ToolName), msgs[i].Role == message.RoleUser && b.Context == memoryContext && !session.IsCut(b.Text):
				read.WriteString(plainWords(memory.Doubtful(b.Text))) // what was doubtful stays so
			// Details have the messages that no person wrote: summaries, an application's
			// entries, notes of the machine, which repeat what a model said.
			case msgs[i].Role == message.RoleToolResult, msgs[i].Role == message.RoleUser && len(msgs[i].Details) > 0, msgs[i].Role == message.RoleUser && attachedBlock(&b):
				read.WriteString(plainWords(b.Text))
			case msgs[i].Role == message.RoleUser:
				said.WriteString(plainWords(b.Text))
			}
		}
	}
	if read.Len() == 0 {
		return false
	}
	have, own := read.String(), said.String()
	for _, text := range textsIn(args) {
		w := strings.Fields(plainWords(text))
		n := min(quoted, len(w))
		for i := 0; n > 1 && i+n <= len(w); i++ {
			part := " " + strings.Join(w[i:i+n], " ") + " "
			if strings.Contains(have, part) && !strings.Contains(own, part) {
				return true
			}
		}
	}
	return false
}

// attachedBlock is whether a block of a person's message is not the person's: what the
// application attached, or what earlier conversations left.
func attachedBlock(b *message.Block) bool {
	if b.Context != "" {
		return true
	}
	text := b.Text
	for _, tag := range []string{"<page>\n", "<references>\n", "<context>\n"} {
		if strings.HasPrefix(text, tag) {
			return true
		}
	}
	return false
}

// plainWords are the words of a text between single spaces, in lower case, with one
// space around each.
func plainWords(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " ") + " "
}

// textsIn are all texts in a JSON value.
func textsIn(raw json.RawMessage) (out []string) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return out
}
