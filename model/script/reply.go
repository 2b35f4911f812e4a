package script

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentd/fault"
	"agentd/message"
)

// Reply is what a script answers. It belongs to the caller.
type Reply struct {
	// ID is 16 hexadecimal digits that stand for the position in the
	// conversation.
	ID string
	// Blocks are thinking, text and tool calls, in this order. The arguments
	// of a call are not a JSON object if the script wrote them as a text that
	// is none.
	Blocks []message.Block
	Stop   message.StopReason
	// StopSequence is the stop text that ended the reply, if one did.
	StopSequence string
	// Usage has no cost. Unless UsageGiven says that the script fixed the
	// prompt's part, Input is the whole prompt and nothing counts as cached.
	Usage      message.Usage
	UsageGiven bool
	Latency    Latency
	// Fault is nil if the reply succeeds.
	Fault *Fault
}

// Player answers conversations with a script. It is safe for concurrent use. Its
// only memory is how many attempts of a turn failed, for faults with `times`.
type Player struct {
	script *Script
	mu     sync.Mutex
	failed map[uint64]int
	order  []uint64 // the keys of failed, oldest first
}

// maxFailed bounds the memory of a player; the oldest conversation is forgotten.
const maxFailed = 10_000

// NewPlayer returns a player of the script.
func NewPlayer(s *Script) *Player { return &Player{script: s, failed: map[uint64]int{}} }

// Script is the script that is played.
func (p *Player) Script() *Script { return p.script }

// Reset forgets the failed attempts.
func (p *Player) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed, p.order = map[uint64]int{}, nil
}

// attempt counts an attempt and reports whether the fault comes this time.
func (p *Player) attempt(f *Fault, key uint64) bool {
	if f.Times == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.failed[key]
	if !known {
		if len(p.order) >= maxFailed {
			delete(p.failed, p.order[0])
			p.order = p.order[1:]
		}
		p.order = append(p.order, key)
	}
	p.failed[key] = n + 1
	return n < f.Times
}

// Reply answers the conversation. The error, a *[fault.Error], says which part of
// the script is at fault.
func (p *Player) Reply(c *Conversation) (*Reply, error) {
	s := p.script
	id := c.identity()
	r := &Reply{ID: hex16(id), Stop: message.StopEnd}
	t, v := s.pick(c)
	if t == nil {
		if s.fallthru == nil {
			return nil, &fault.Error{Op: "script " + s.name, Kind: fault.Invalid,
				Err:  fmt.Errorf("no turn is left for step %d of this conversation", v.step+1),
				Hint: "add a turn, a `repeat`, or a `fallthrough` to the script"}
		}
		out, err := s.fallthru.render(v)
		if err != nil {
			return nil, s.broken(err)
		}
		r.say(message.BlockText, out)
	} else if err := p.play(r, t, v); err != nil {
		return nil, s.broken(err)
	}
	r.limit(c)
	r.count(c, t)
	return r, nil
}

func (s *Script) broken(err error) error {
	return &fault.Error{Op: "script " + s.name, Kind: fault.Invalid, Err: err, Hint: "correct the template in the script"}
}

// play fills the reply from a turn.
func (p *Player) play(r *Reply, t *turn, v *view) error {
	c := v.c
	r.Stop, r.Latency = t.stop, t.latency
	if t.fault != nil && (t.fault.Times == 0 || p.attempt(t.fault, mixInt(c.digest(), t.number))) {
		r.Fault = t.fault
	}
	if t.thinking != nil && !c.NoThinking {
		s, err := t.thinking.render(v)
		if err != nil {
			return err
		}
		r.say(message.BlockThinking, s)
	}
	if t.text != nil {
		s, err := t.text.render(v)
		if err != nil {
			return err
		}
		r.say(message.BlockText, s)
	}
	if len(t.calls) == 0 {
		return nil
	}
	if c.NoTools {
		if r.Stop = t.stop; r.Stop == message.StopToolUse {
			r.Stop = message.StopEnd
		}
		if t.text == nil {
			r.say(message.BlockText, fmt.Sprintf("(The script calls %s here, but the request allows no tools.)", t.calls[0].name))
		}
		return nil
	}
	prefix := c.CallPrefix
	if prefix == "" {
		prefix = "call_"
	}
	calls := t.calls
	if c.OneCall {
		calls = calls[:1]
	}
	for i, tc := range calls {
		b := message.Block{Type: message.BlockToolCall, Name: tc.name, ID: prefix + r.ID + "_" + strconv.Itoa(i)}
		var err error
		if tc.id != nil {
			if b.ID, err = tc.id.render(v); err != nil {
				return err
			}
		}
		switch {
		case tc.fixed != nil:
			b.Arguments = bytes.Clone(tc.fixed)
		case tc.raw != nil:
			s, err := tc.raw.render(v)
			if err != nil {
				return err
			}
			b.Arguments = json.RawMessage(s)
		default:
			if b.Arguments, err = tc.args.append(nil, v); err != nil {
				return err
			}
		}
		r.Blocks = append(r.Blocks, b)
	}
	return nil
}

// say adds a block of text; an empty one is left out.
func (r *Reply) say(typ message.BlockType, s string) {
	if s == "" {
		return
	}
	b := message.Block{Type: typ, Text: s}
	if typ == message.BlockThinking {
		b.Signature = Sign(s)
	}
	r.Blocks = append(r.Blocks, b)
}

// limit ends the reply at a stop text and at the token limit, as a model would.
func (r *Reply) limit(c *Conversation) {
	for i := range r.Blocks {
		b := &r.Blocks[i]
		if b.Type != message.BlockText {
			continue
		}
		cut, by := -1, ""
		for _, stop := range c.Stop {
			if at := strings.Index(b.Text, stop); stop != "" && at >= 0 && (cut < 0 || at < cut) {
				cut, by = at, stop
			}
		}
		if cut >= 0 {
			b.Text = b.Text[:cut]
			r.Blocks, r.Stop, r.StopSequence = r.Blocks[:i+1], message.StopEnd, by
			if cut == 0 {
				r.Blocks = r.Blocks[:i]
			}
			break
		}
	}
	if c.MaxTokens <= 0 {
		return
	}
	left := c.MaxTokens * 4
	for i := range r.Blocks {
		b := &r.Blocks[i]
		size := len(b.Text) + len(b.Arguments)
		if size <= left {
			left -= size
			continue
		}
		r.Stop, r.StopSequence = message.StopLength, ""
		if b.Type == message.BlockToolCall || left == 0 {
			r.Blocks = r.Blocks[:i]
			return
		}
		for left > 0 && !utf8.RuneStart(b.Text[left]) {
			left--
		}
		b.Text = b.Text[:left]
		if b.Type == message.BlockThinking {
			b.Signature = Sign(b.Text)
		}
		r.Blocks = r.Blocks[:i+1]
		return
	}
}

// count fills in the usage: a token for four bytes, and what the script fixed.
func (r *Reply) count(c *Conversation, t *turn) {
	out, thought := 0, 0
	for i := range r.Blocks {
		b := &r.Blocks[i]
		out += len(b.Text) + len(b.Name) + len(b.Arguments)
		if b.Type == message.BlockThinking {
			thought += len(b.Text)
		}
	}
	r.Usage = message.Usage{Input: c.PromptTokens, Output: max(Tokens(out), 1), Reasoning: Tokens(thought)}
	if t != nil && t.usage != nil {
		u := t.usage
		r.UsageGiven = u.input != nil || u.cacheRead != nil || u.cacheWrite != nil
		set(&r.Usage.Input, u.input)
		set(&r.Usage.Output, u.output)
		set(&r.Usage.CacheRead, u.cacheRead)
		set(&r.Usage.CacheWrite, u.cacheWrite)
		set(&r.Usage.Reasoning, u.reasoning)
	}
	r.Usage.TotalTokens = r.Usage.Prompt() + r.Usage.Output
}

func set(to, from *int64) {
	if from != nil {
		*to = *from
	}
}

func hex16(h uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[h>>(60-4*i)&15]
	}
	return string(b[:])
}

// Sign is the signature of a thinking text: opaque to clients, and a check that
// they send the text back unchanged.
func Sign(thinking string) string {
	return base64.StdEncoding.EncodeToString([]byte("agentd-script/" + hex16(mix(fnvSeed, thinking))))
}

// SleepFunc waits, or returns the context's error when that ends first.
type SleepFunc func(ctx context.Context, d time.Duration) error

// Sleep is the SleepFunc of real time.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sink receives a reply piece by piece. The index is that of the block.
type Sink interface {
	Start() error
	BlockStart(i int) error
	Delta(i int, piece string) error
	BlockEnd(i int) error
}

// ErrFault is what Play returns at the place of a fault. What then happens to the
// stream is for the caller, who knows the protocol.
var ErrFault = errors.New("the scripted fault")

// Play streams the reply into the sink: in chunks, at its pace, up to the end or
// up to its fault. A stall without an end waits for the context. A fault that
// comes Instead of the reply is the caller's.
func (r *Reply) Play(ctx context.Context, sleep SleepFunc, s Sink) error {
	if err := r.Wait(ctx, sleep); err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	size := r.Latency.Size
	if size == 0 {
		size = DefaultSize
	}
	n, armed := 0, r.Fault.Midway()
	strike := func() error {
		armed = false
		if r.Fault.Kind == FaultStall {
			return r.Stall(ctx, sleep)
		}
		return ErrFault
	}
	for i := range r.Blocks {
		if err := s.BlockStart(i); err != nil {
			return err
		}
		rest := r.Blocks[i].Text
		if r.Blocks[i].Type == message.BlockToolCall {
			rest = string(r.Blocks[i].Arguments)
		}
		for rest != "" {
			if armed && n >= r.Fault.after() {
				if err := strike(); err != nil {
					return err
				}
			}
			if n > 0 && r.Latency.Chunk > 0 {
				if err := sleep(ctx, r.Latency.Chunk); err != nil {
					return err
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			cut := chunk(rest, size)
			if err := s.Delta(i, rest[:cut]); err != nil {
				return err
			}
			rest = rest[cut:]
			n++
		}
		if err := s.BlockEnd(i); err != nil {
			return err
		}
	}
	if armed {
		return strike()
	}
	return ctx.Err()
}

// Wait waits for as long as the first byte takes.
func (r *Reply) Wait(ctx context.Context, sleep SleepFunc) error {
	d := r.Latency.First
	if f := r.Fault; f != nil && f.Kind == FaultSlowFirstByte {
		d += max(f.For, 0)
		if f.For == 0 {
			d += 2 * time.Second
		}
	}
	if d == 0 {
		return ctx.Err()
	}
	return sleep(ctx, d)
}

// Stall waits for as long as the reply's stall lasts.
func (r *Reply) Stall(ctx context.Context, sleep SleepFunc) error {
	if r.Fault.For > 0 {
		return sleep(ctx, r.Fault.For)
	}
	<-ctx.Done()
	return ctx.Err()
}

// chunk is the length in bytes of the first n runes of s.
func chunk(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
