// Package prefix says how the beginning of a request relates to that of the request
// before it, which is what prompt caches go by, and what of it changed.
//
// It promises that a print is a function of the request alone, the same in every
// process, and holds hashes and names but nothing of what was said.
package prefix

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"runtime"
	"slices"
	"strings"
	"sync"

	"agentd/event"
	"agentd/message"
	"agentd/model"
)

// Hash is the hash of a part: the first eight bytes of a SHA-256.
type Hash uint64

// String is the form that is stored and shown: eleven letters.
func (h Hash) String() string { return string(h.append(nil)) }

// hashLetters is how long the form is that String gives.
const hashLetters = 11

func (h Hash) append(to []byte) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(h))
	return base64.RawURLEncoding.AppendEncode(to, b[:])
}

// ParseHash reads what String gives; anything else is 0.
func ParseHash(s string) Hash {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 8 {
		return 0
	}
	return Hash(binary.BigEndian.Uint64(b))
}

// Part is a part of a request: a tool, a section of the system prompt, or a message,
// which is named by the id of its entry.
type Part struct {
	Name string
	Hash Hash
}

// Print is a request as a prompt cache sees it: what comes first counts for all that
// follows.
type Print struct {
	// Model is the provider and its id of the model.
	Model string
	// Settings are what makes messages others without being one of them, as name=value.
	Settings                []string
	Tools, System, Messages []Part
}

// Sum stands for a print: two requests with the same Sum begin alike.
type Sum struct {
	Model    string
	Settings []string
	// Tools, System and Messages are chained over all parts; N counts the messages.
	Tools, System, Messages Hash
	N                       int
}

const chainSeed Hash = 0x9e3779b97f4a7c15

func chain(h, part Hash) Hash {
	h ^= part
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func chained(parts []Part) Hash {
	h := chainSeed
	for i := range parts {
		h = chain(h, parts[i].Hash)
	}
	return h
}

// Sum gives the print's sum.
func (p *Print) Sum() Sum { return p.sum(len(p.Messages)) }

// sum is that of a request with the first n messages.
func (p *Print) sum(n int) Sum {
	return Sum{Model: p.Model, Settings: p.Settings, Tools: chained(p.Tools), System: chained(p.System), Messages: chained(p.Messages[:n]), N: n}
}

// Extends reports whether the request begins with all of the one that before stands for.
func (p *Print) Extends(before *Sum) bool {
	if before.N > len(p.Messages) {
		return false
	}
	s := p.sum(before.N)
	return s.Model == before.Model && slices.Equal(s.Settings, before.Settings) && s.Tools == before.Tools && s.System == before.System && s.Messages == before.Messages
}

// Kinds of parts in breaks, in the order in which caches go by them.
const (
	PartModel    = "model"
	PartTool     = "tool"
	PartSection  = "section"
	PartSettings = "settings"
	PartMessage  = "message"
)

// What happened to a part.
const (
	Changed  = "changed"
	Added    = "added"
	Removed  = "removed"
	Moved    = "moved"
	Replaced = "replaced" // another entry stands in its place
)

// Compare gives the first thing that keeps a request from being an extension of
// another, or nil. Index is where it is in now, or was in before.
func Compare(before, now *Print) *event.CacheBreak {
	if before.Model != now.Model {
		return &event.CacheBreak{Part: PartModel, Name: now.Model, Change: Changed, Old: before.Model, New: now.Model}
	}
	if b := first(PartTool, before.Tools, now.Tools, true); b != nil {
		return b
	}
	if b := first(PartSection, before.System, now.System, true); b != nil {
		return b
	}
	if !slices.Equal(before.Settings, now.Settings) {
		return setting(before.Settings, now.Settings)
	}
	return first(PartMessage, before.Messages, now.Messages, false)
}

// first finds the first difference of two lists. whole: the second may not be longer.
func first(kind string, before, now []Part, whole bool) *event.CacheBreak {
	i := 0
	for i < len(before) && i < len(now) && before[i].Hash == now[i].Hash {
		i++
	}
	if i == len(before) && (i == len(now) || !whole) {
		return nil
	}
	b := &event.CacheBreak{Part: kind, Index: i}
	var old, fresh *Part
	if i < len(before) {
		old = &before[i]
	}
	if i < len(now) {
		fresh = &now[i]
	}
	has := func(parts []Part, name string) bool {
		return slices.ContainsFunc(parts, func(p Part) bool { return p.Name == name })
	}
	switch {
	case old == nil:
		b.Name, b.Change = fresh.Name, Added
	case fresh == nil:
		b.Name, b.Change = old.Name, Removed
	case old.Name == fresh.Name:
		b.Name, b.Change = fresh.Name, Changed
	case kind == PartMessage:
		b.Name, b.Change = fresh.Name, Replaced
	case !has(before, fresh.Name):
		b.Name, b.Change, old = fresh.Name, Added, nil
	case !has(now, old.Name):
		b.Name, b.Change, fresh = old.Name, Removed, nil
	default:
		b.Name, b.Change = fresh.Name, Moved
	}
	if old != nil {
		b.Old = old.Hash.String()
	}
	if fresh != nil {
		b.New = fresh.Hash.String()
	}
	if kind == PartMessage {
		b.EntryID, b.Name = b.Name, ""
	}
	return b
}

func setting(before, now []string) *event.CacheBreak {
	value := func(list []string, name string) string {
		for _, s := range list {
			if k, v, _ := strings.Cut(s, "="); k == name {
				return v
			}
		}
		return ""
	}
	for _, s := range slices.Concat(before, now) {
		name, _, _ := strings.Cut(s, "=")
		if old, fresh := value(before, name), value(now, name); old != fresh {
			return &event.CacheBreak{Part: PartSettings, Name: name, Change: Changed, Old: old, New: fresh}
		}
	}
	return &event.CacheBreak{Part: PartSettings, Change: Changed}
}

// Printer makes prints. It keeps hashes of the messages it has seen, so that a print of
// a longer conversation hashes what is new. The zero value is ready. It is not safe for
// concurrent use.
type Printer struct {
	// Mutable: contents of messages may change in place, so nothing is kept.
	Mutable bool

	seen Seen
	hasher
}

// Seen are messages that were hashed, for another printer to go on with. It holds on to
// their contents, is never changed, and may be used by several printers at a time. The zero
// value is of no messages.
type Seen struct {
	of     []known
	hashes []Hash
}

// known is what tells a message that was hashed. Contents never change, so that the same
// memory is the same content.
type known struct {
	content *message.Block
	blocks  int
	role    message.Role
	call    string
	isError bool
}

func knownBy(m *message.Message) known {
	k := known{blocks: len(m.Content), role: m.Role, call: m.ToolCallID, isError: m.IsError}
	if len(m.Content) > 0 {
		k.content = &m.Content[0]
	}
	return k
}

// Seen copies what the printer has seen last of the first n messages of a request; nothing
// if it keeps nothing.
func (p *Printer) Seen(n int) Seen {
	n = min(n, p.Kept())
	return Seen{slices.Clone(p.seen.of[:n]), slices.Clone(p.seen.hashes[:n])}
}

// Kept is of how many messages the printer has seen it keeps the hashes.
func (p *Printer) Kept() int {
	if p.Mutable {
		return 0
	}
	return p.seen.Len()
}

// Resume goes on with what another printer has seen.
func (p *Printer) Resume(s Seen) { p.seen = s.first(s.Len()) }

// first is of the first n messages. What is added to it is not written behind them, where
// others may have the rest.
func (s Seen) first(n int) Seen { return Seen{s.of[:n:n], s.hashes[:n:n]} }

// Len is of how many messages hashes are kept.
func (s Seen) Len() int { return len(s.of) }

// Bytes is about how much memory it takes besides the contents.
func (s Seen) Bytes() int64 { return int64(len(s.of)) * 72 }

// hasher makes hashes. The zero value is ready.
type hasher struct {
	h   hash.Hash
	buf []byte
}

// examples is the section whose text is messages.
const examples = "few_shot_examples"

// Print makes the print of a request to a model ("provider/id"). entry names its
// messages; those that it has no name for are "".
func (p *Printer) Print(req *model.Request, name string, entry func(i int) string) *Print {
	out := &Print{Model: name, Settings: settings(req, name)}
	for i := range req.Tools {
		t := &req.Tools[i]
		out.Tools = append(out.Tools, Part{t.Name, p.sum(t.Name, t.Description, string(t.Schema))})
	}
	// What the system prompt was made of says more than its parts, if it is known.
	for _, s := range req.Sections {
		if s.Name != examples {
			out.System = append(out.System, Part{s.Name, p.sum(s.Hash)})
		}
	}
	if len(req.Sections) == 0 {
		for i := range req.System {
			s := &req.System[i]
			out.System = append(out.System, Part{s.Name, p.sum(s.Text)})
		}
	}
	kept := 0
	for !p.Mutable && kept < p.seen.Len() && kept < len(req.Messages) && p.seen.of[kept] == knownBy(&req.Messages[kept]) {
		kept++
	}
	if kept < p.seen.Len() {
		p.seen = p.seen.first(kept)
	}
	p.add(req.Messages[kept:])
	out.Messages = make([]Part, len(req.Messages))
	for i := range out.Messages {
		out.Messages[i] = Part{entry(i), p.seen.hashes[i]}
	}
	return out
}

// least is how many messages are worth a goroutine of their own.
const least = 128

// add hashes messages that are new: on all processors where a long conversation is seen
// for the first time.
func (p *Printer) add(msgs []message.Message) {
	n, from := len(msgs), p.seen.Len()
	for i := range msgs {
		p.seen.of = append(p.seen.of, knownBy(&msgs[i]))
	}
	p.seen.hashes = append(p.seen.hashes, make([]Hash, n)...)
	to := p.seen.hashes[from:]
	k := max(1, min(n/least, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for i := range k - 1 {
		wg.Go(func() {
			var h hasher
			h.messages(to[i*n/k:], msgs[i*n/k:(i+1)*n/k])
		})
	}
	p.messages(to[(k-1)*n/k:], msgs[(k-1)*n/k:])
	wg.Wait()
}

func (p *hasher) messages(to []Hash, msgs []message.Message) {
	for i := range msgs {
		to[i] = p.message(&msgs[i])
	}
}

func (p *hasher) message(m *message.Message) Hash {
	p.buf = append(p.buf[:0], m.Role...)
	p.field(m.ToolCallID, m.ToolName)
	if m.IsError {
		p.field("error")
	}
	for i := range m.Content {
		c := &m.Content[i]
		p.field(string(c.Type), c.Text, c.Signature, c.Data, c.MimeType, c.ID, c.Name, string(c.Arguments))
		if c.Redacted {
			p.field("redacted")
		}
	}
	return p.end()
}

func (p *hasher) sum(fields ...string) Hash {
	p.buf = p.buf[:0]
	p.field(fields...)
	return p.end()
}

func (p *hasher) field(fields ...string) {
	for _, s := range fields {
		p.buf = binary.AppendUvarint(p.buf, uint64(len(s)))
		p.buf = append(p.buf, s...)
	}
}

// keptBuffer bounds what is kept of a buffer that was grown for a large message.
const keptBuffer = 64 << 10

func (p *hasher) end() Hash {
	if p.h == nil {
		p.h = sha256.New()
	}
	p.h.Reset()
	_, _ = p.h.Write(p.buf)
	var sum [sha256.Size]byte
	p.h.Sum(sum[:0])
	if cap(p.buf) > keptBuffer {
		p.buf = nil
	}
	return Hash(binary.BigEndian.Uint64(sum[:8]))
}

// settings are what the provider of a model lets the cache go by besides what is said.
func settings(req *model.Request, name string) (out []string) {
	provider, _, _ := strings.Cut(name, "/")
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	if provider == "anthropic" {
		add("tool_choice", string(req.ToolChoice))
		add("thinking", string(req.Thinking))
		if req.JSON && len(req.Schema) == 0 {
			add("json", "yes") // it is said in words, at the end of the system prompt
		}
		if hasImages(req.Messages) {
			add("images", "yes")
		}
	}
	if len(req.Schema) > 0 {
		sum := sha256.Sum256(req.Schema)
		add("schema", Hash(binary.BigEndian.Uint64(sum[:8])).String())
	}
	return out
}

func hasImages(msgs []message.Message) bool {
	for i := range msgs {
		for j := range msgs[i].Content {
			if msgs[i].Content[j].Type == message.BlockImage {
				return true
			}
		}
	}
	return false
}
