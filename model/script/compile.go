package script

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"agentd/message"
)

// maxRepeat and maxDelay bound what a script may ask for, so that a slip of the
// keyboard is an error and not a hang.
const (
	maxRepeat = 1_000_000
	maxDelay  = 24 * time.Hour
)

// compile checks the script and prepares everything that replies need.
func (p *parsing) compile(raw *rawScript) (*Script, error) {
	s := &Script{name: raw.Name, models: raw.Models}
	switch raw.Restart {
	case "", "message":
	case "never":
		s.never = true
	default:
		return nil, p.at("restart", "use message (the script starts again at each user message) or never", "unknown value %q", raw.Restart)
	}
	for i, m := range raw.Models {
		if strings.TrimSpace(m) == "" {
			return nil, p.at(fmt.Sprintf("models[%d]", i), "remove it; a script without models answers any", "a model id is empty")
		}
	}
	base, err := p.latency("latency", raw.Latency, Latency{})
	if err != nil {
		return nil, err
	}
	for i := range raw.Turns {
		t, err := p.turn(fmt.Sprintf("turns[%d]", i), &raw.Turns[i], base)
		if err != nil {
			return nil, err
		}
		t.number = i + 1
		s.turns = append(s.turns, t)
		s.conditional = s.conditional || t.when != nil
	}
	if raw.Fallthrough != nil {
		if s.fallthru, err = p.template("fallthrough", *raw.Fallthrough); err != nil {
			return nil, err
		}
	}
	if len(s.turns) == 0 && s.fallthru == nil {
		return nil, p.fail(1, "the script has no turns and no fallthrough, so it answers nothing",
			`add a turn, for example "turns: [{text: Hello}]"`)
	}
	return s, p.reachable(s)
}

// reachable refuses a turn that no conversation can come to: the answer ended
// before it, and the next user message starts the script again.
func (p *parsing) reachable(s *Script) error {
	if s.never {
		return nil
	}
	ended := 0
	for i, t := range s.turns {
		if t.when != nil {
			continue
		}
		if ended > 0 {
			return p.at(fmt.Sprintf("turns[%d]", i),
				fmt.Sprintf("set `restart: never` if the turns answer one user message each, or give turn %d tool_calls, or give this turn a `when`", ended),
				"this turn can not be reached: turn %d ends the answer, and the script starts again at the next user message", ended)
		}
		if len(t.calls) == 0 && t.stop != message.StopLength {
			ended = t.number
		}
	}
	return nil
}

func (p *parsing) turn(path string, raw *rawTurn, base Latency) (*turn, error) {
	t := &turn{repeat: 1}
	var err error
	if raw.When != nil {
		if t.when, err = p.when(path+".when", raw.When); err != nil {
			return nil, err
		}
	}
	if raw.Thinking != "" {
		if t.thinking, err = p.template(path+".thinking", raw.Thinking); err != nil {
			return nil, err
		}
	}
	if raw.Text != "" {
		if t.text, err = p.template(path+".text", raw.Text); err != nil {
			return nil, err
		}
	}
	for i := range raw.ToolCalls {
		c, err := p.call(fmt.Sprintf("%s.tool_calls[%d]", path, i), &raw.ToolCalls[i])
		if err != nil {
			return nil, err
		}
		t.calls = append(t.calls, c)
	}
	switch r := message.StopReason(raw.Stop); r {
	case "":
		t.stop = message.StopEnd
		if len(t.calls) > 0 {
			t.stop = message.StopToolUse
		}
	case message.StopEnd, message.StopLength:
		t.stop = r
	case message.StopToolUse:
		if len(t.calls) == 0 {
			return nil, p.at(path+".stop", "add tool_calls, or leave stop out", "toolUse in a turn without tool_calls")
		}
		t.stop = r
	default:
		return nil, p.at(path+".stop", "use stop, length or toolUse, or leave it out", "unknown stop reason %q", raw.Stop)
	}
	if t.usage, err = p.usage(path+".usage", raw.Usage); err != nil {
		return nil, err
	}
	if t.latency, err = p.latency(path+".latency", raw.Latency, base); err != nil {
		return nil, err
	}
	if raw.Repeat != nil {
		if t.repeat = *raw.Repeat; t.repeat < 1 || t.repeat > maxRepeat {
			return nil, p.at(path+".repeat", "write how many steps the turn answers, 1 to 1000000", "%d is out of range", t.repeat)
		}
	}
	if raw.Fault != nil {
		f := Fault{Kind: FaultKind(raw.Fault.Kind), Status: raw.Fault.Status, Times: raw.Fault.Times,
			Message: raw.Fault.Message, After: -1}
		if f.RetryAfter, err = p.duration(path+".fault.retry_after", raw.Fault.RetryAfter); err != nil {
			return nil, err
		}
		if f.For, err = p.duration(path+".fault.for", raw.Fault.For); err != nil {
			return nil, err
		}
		if raw.Fault.After != nil {
			if f.After = *raw.Fault.After; f.After < 0 {
				return nil, p.at(path+".fault.after", "write how many chunks come before the fault", "%d is negative", f.After)
			}
		}
		if key, msg, hint := f.check(); key != "" {
			return nil, p.at(path+".fault."+key, hint, "%s", msg)
		}
		t.fault = &f
	}
	if t.text == nil && t.thinking == nil && len(t.calls) == 0 && t.fault == nil {
		return nil, p.at(path, "give it text, thinking, tool_calls or a fault", "the turn says nothing")
	}
	return t, nil
}

func (p *parsing) when(path string, raw *rawWhen) (*when, error) {
	w := &when{tool: raw.Tool, failed: raw.Failed}
	for _, re := range []struct {
		key, expr string
		to        **regexp.Regexp
	}{{"user", raw.User, &w.user}, {"system", raw.System, &w.system}, {"result", raw.Result, &w.result}} {
		if re.expr == "" {
			continue
		}
		c, err := regexp.Compile(re.expr)
		if err != nil {
			return nil, p.at(path+"."+re.key, "write a regular expression in Go's syntax (RE2)", "%v", err)
		}
		*re.to = c
	}
	if w.user == nil && w.system == nil && w.result == nil && w.tool == "" && w.failed == nil {
		return nil, p.at(path, "give it user, system, tool, result or failed, or leave `when` out", "the condition is empty")
	}
	return w, nil
}

func (p *parsing) usage(path string, raw *rawUsage) (*usage, error) {
	if raw == nil {
		return nil, nil
	}
	u := usage{raw.Input, raw.Output, raw.CacheRead, raw.CacheWrite, raw.Reasoning}
	for key, v := range map[string]*int64{"input": u.input, "output": u.output, "cache_read": u.cacheRead,
		"cache_write": u.cacheWrite, "reasoning": u.reasoning} {
		if v != nil && (*v < 0 || *v > math.MaxInt32) {
			return nil, p.at(path+"."+key, "write a number of tokens, 0 to 2147483647", "%d is out of range", *v)
		}
	}
	return &u, nil
}

func (p *parsing) latency(path string, raw *rawLatency, base Latency) (Latency, error) {
	if raw == nil {
		return base, nil
	}
	l := Latency{Size: raw.Size}
	var err error
	if l.First, err = p.duration(path+".first", raw.First); err != nil {
		return l, err
	}
	if l.Chunk, err = p.duration(path+".chunk", raw.Chunk); err != nil {
		return l, err
	}
	if l.Size < 0 {
		return l, p.at(path+".size", "write the number of characters in a chunk, 1 or more", "%d is negative", l.Size)
	}
	return l, nil
}

// duration reads a duration of at most a day; nothing is 0.
func (p *parsing) duration(path, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxDelay {
		return 0, p.at(path, "write a duration of at most 24h, such as 50ms or 2s", "%q is not such a duration", s)
	}
	return d, nil
}

func (p *parsing) call(path string, raw *rawCall) (*call, error) {
	c := &call{name: raw.Name}
	if strings.TrimSpace(raw.Name) == "" {
		return nil, p.at(path+".name", "name the tool to call", "a tool call needs a name")
	}
	var err error
	if raw.ID != "" {
		if c.id, err = p.template(path+".id", raw.ID); err != nil {
			return nil, err
		}
	}
	switch v := raw.Arguments.(type) {
	case nil:
		c.fixed = []byte("{}")
	case string:
		if c.raw, err = p.template(path+".arguments", v); err != nil {
			return nil, err
		}
	case yaml.MapSlice:
		n, err := p.node(path+".arguments", v)
		if err != nil {
			return nil, err
		}
		if n.plain() {
			if c.fixed, err = n.append(nil, nil); err != nil {
				return nil, err
			}
			break
		}
		c.args = n
	default:
		return nil, p.at(path+".arguments", "write a mapping, or a text that is sent as it is", "arguments are neither a mapping nor a text")
	}
	return c, nil
}

// node is a value in tool arguments: a JSON text that is fixed, a template, an
// object or a list.
type node struct {
	fixed  []byte
	text   *text
	keys   [][]byte // encoded; with vals an object, without a list
	vals   []*node
	object bool
}

func (p *parsing) node(path string, v any) (*node, error) {
	switch v := v.(type) {
	case string:
		t, err := p.template(path, v)
		if err != nil {
			return nil, err
		}
		if t.plain() {
			return &node{fixed: AppendQuote(nil, v)}, nil
		}
		return &node{text: t}, nil
	case yaml.MapSlice:
		n := &node{object: true}
		for _, item := range v {
			key := fmt.Sprint(item.Key)
			val, err := p.node(path+"."+key, item.Value)
			if err != nil {
				return nil, err
			}
			n.keys = append(n.keys, AppendQuote(nil, key))
			n.vals = append(n.vals, val)
		}
		return n, nil
	case []any:
		n := &node{}
		for i, item := range v {
			val, err := p.node(fmt.Sprintf("%s[%d]", path, i), item)
			if err != nil {
				return nil, err
			}
			n.vals = append(n.vals, val)
		}
		return n, nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, p.at(path, "write a number that JSON has", "%v is not a JSON number", v)
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, p.at(path, "write a text, a number, true, false, null, a list or a mapping", "%v", err)
	}
	return &node{fixed: b}, nil
}

// plain reports whether the node holds no template.
func (n *node) plain() bool {
	if n.text != nil {
		return false
	}
	for _, v := range n.vals {
		if !v.plain() {
			return false
		}
	}
	return true
}

// append writes the node as JSON.
func (n *node) append(b []byte, data *view) ([]byte, error) {
	var err error
	switch {
	case n.fixed != nil:
		return append(b, n.fixed...), nil
	case n.text != nil:
		s, err := n.text.render(data)
		if err != nil {
			return nil, err
		}
		return AppendQuote(b, s), nil
	}
	open, end := byte('['), byte(']')
	if n.object {
		open, end = '{', '}'
	}
	b = append(b, open)
	for i, v := range n.vals {
		if i > 0 {
			b = append(b, ',')
		}
		if n.object {
			b = append(append(b, n.keys[i]...), ':')
		}
		if b, err = v.append(b, data); err != nil {
			return nil, err
		}
	}
	return append(b, end), nil
}

// AppendQuote appends s to b as a JSON string and returns it. Invalid UTF-8 becomes
// U+FFFD.
func AppendQuote(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			b = append(append(b, s[from:i]...), `\ufffd`...)
		} else {
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			case '\r':
				b = append(b, '\\', 'r')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
