package run

import (
	"encoding/json"
	"strconv"

	"agentd/event"
	"agentd/message"
)

// ask opens an interrupt for a call.
func (m *machine) ask(c *Call, kind, prompt string, schema json.RawMessage, expires int64) {
	s := &m.State
	s.Asked++
	c.Phase = CallAsked
	c.Interrupt = s.RunID + ".i" + strconv.Itoa(s.Asked)
	c.InterruptKind, c.Expires = kind, m.expiry(expires)
	m.write(OpenInterrupt{ID: c.Interrupt, Kind: kind, CallID: c.ID, Name: c.Name, Prompt: prompt, Schema: schema, Expires: c.Expires})
	m.tell(event.CheckpointRequired, &event.Checkpoint{InterruptID: c.Interrupt, Kind: kind, Prompt: prompt, Schema: schema,
		ToolCall: &event.Tool{ToolCallID: c.ID, Name: c.Name}})
}

func (m *machine) closeInterrupt(c *Call, reason string) {
	m.write(CloseInterrupt{ID: c.Interrupt, Reason: reason})
	m.tell(event.CheckpointResolved, &event.Checkpoint{InterruptID: c.Interrupt, Kind: c.InterruptKind, Decision: "cancelled", Reason: reason})
}

// planApproved is what the model reads of a plan that a person approved, which may switch
// the mode: from then on the run has the new one, and the session once the batch is over.
func (m *machine) planApproved(in Answered) string {
	s := &m.State
	switched := ""
	if in.Mode != "" && in.Mode != s.Mode {
		s.Mode, s.Switched = in.Mode, true
		switched = " The session is in mode " + in.Mode + " now."
	}
	changed := ""
	if in.Amended {
		changed = " with changes"
	}
	text := "A person approved the plan" + changed + "." + switched
	if s.Mode != "" && s.Mode != modeEdit {
		text += " The session stays in mode " + s.Mode + ", so do not begin with it: say that it is approved, and that the person switches to mode edit when you are to begin."
		if in.Amended {
			text += " The plan as it is now:\n" + in.Text
		}
		return text
	}
	if in.Amended {
		return text + " Go on with it as it is now:\n" + in.Text
	}
	return text + " Go on with it."
}

// forbidden drops the calls that wait and that the mode forbids to which the approval of
// a plan switches: they were judged by another. A call of which nobody knows whether it
// happened stays a person's to settle.
func (m *machine) forbidden(why map[string]string) {
	s := &m.State
	for i := range s.Calls {
		c := &s.Calls[i]
		if waits := c.Phase == CallReady || c.Phase == CallAsked && c.InterruptKind != kindUncertain; !waits || why[c.ID] == "" {
			continue
		}
		m.drop(i, "the session's mode forbids the call now", why[c.ID])
		s.Failures-- // the person's choice, not the tool's failure
		c.Sig = ""
	}
}

// answered applies a person's answer. Several interrupts may be open; each is
// answered on its own, in any order.
func (m *machine) answered(in Answered) error {
	s := &m.State
	if s.Asks != nil && in.Interrupt == s.Asks.Interrupt {
		return m.answeredMore(in)
	}
	i := -1
	for j := range s.Calls {
		if s.Calls[j].Interrupt == in.Interrupt && s.Calls[j].Phase == CallAsked {
			i = j
		}
	}
	if i < 0 || in.Interrupt == "" {
		return m.illegal("interrupt %q is not open", in.Interrupt)
	}
	c := &s.Calls[i]
	if c.Expires != 0 && m.now >= c.Expires {
		return m.illegal("interrupt %q has expired", in.Interrupt)
	}
	reason := in.Reason
	if reason == "" {
		reason = "no reason given"
	}
	m.forget() // people take their time, and what was read is as old
	var result *message.Message
	mode := ""
	var forbidden map[string]string
	switch c.InterruptKind + " " + in.Decision {
	case "approval approve":
		if in.Amended {
			c.Amended, c.AmendedBy, c.CacheKey = true, c.Interrupt, ""
		}
		c.Phase = CallReady
	case "uncertain retry":
		c.Phase = CallReady
	case "plan approve":
		mode = in.Mode
		if in.Mode != "" && in.Mode != s.Mode {
			forbidden = in.Forbidden
		}
		text := m.planApproved(in)
		r := message.ToolResult(c.ID, c.Name, false, message.Text(text))
		result = &r
	case "plan reject":
		result = errorResult(c, "A person did not approve the plan: "+reason)
	case "approval reject":
		result = errorResult(c, "A person rejected this call: "+reason)
	case "question reject":
		result = errorResult(c, "The person did not answer: "+reason)
	case "question answer":
		r := message.ToolResult(c.ID, c.Name, false, message.Text(in.Text))
		result = &r
	case "uncertain skip":
		result = errorResult(c, "agentd was restarted while this call ran; a person decided not to repeat it: "+reason)
	case "uncertain done":
		text := "agentd was restarted while this call ran; a person checked that it happened."
		if in.Text != "" {
			text += " " + in.Text
		}
		r := message.ToolResult(c.ID, c.Name, false, message.Text(text))
		result = &r
	default:
		return m.illegal("%q does not answer an interrupt of kind %s", in.Decision, c.InterruptKind)
	}
	m.tell(event.CheckpointResolved, &event.Checkpoint{InterruptID: c.Interrupt, Kind: c.InterruptKind, Decision: in.Decision, Reason: in.Reason, SessionMode: mode})
	if result != nil {
		m.resolved(i, result, in.Decision, in.Reason)
	}
	m.forbidden(forbidden)
	m.advance()
	return nil
}
