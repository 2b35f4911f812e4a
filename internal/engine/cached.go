package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"path"
	"slices"

	"agentd/internal/run"
	"agentd/message"
	"agentd/tool"
)

// cacheNote tells the model that a call was not made again.
const cacheNote = "\n[agentd: this is the result of the same call earlier in this turn; this run changed nothing since, so it was not made again.]"

// cacheKey stands for a call whose result an equal one may get; "" for a call that is
// always made: one whose repetition means something, and one of a tool that nobody
// said it of.
func (b *toolbox) cacheKey(spec *tool.Spec, args json.RawMessage) string {
	if len(b.cache) == 0 || spec.Kind != "" || spec.EffectOrDefault() == tool.Once {
		return ""
	}
	if !slices.ContainsFunc(b.cache, func(pattern string) bool { ok, err := path.Match(pattern, spec.Name); return ok && err == nil }) {
		return ""
	}
	// Equal arguments are equal whatever the order of their keys and the space
	// between them. Numbers keep every digit.
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return ""
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	h := sha256.New()
	for _, s := range []string{spec.Source, spec.Name} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	h.Write(plain)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// earlier gives the result that a call gets without being made; nil if it is to be
// made, also because the earlier one can not be had any more.
func (d *driver) earlier(eff run.CallTool) *message.Message {
	if eff.Cached == "" {
		return nil
	}
	m := d.conv.result(eff.Cached)
	if m == nil || m.Role != message.RoleToolResult || m.IsError || m.ToolName != eff.Name {
		return nil
	}
	again := message.ToolResult(eff.CallID, eff.Name, false, append(slices.Clone(m.Content), message.Text(cacheNote))...)
	return &again
}

// result finds a message of the conversation by its entry, also one that has not its
// place yet because an earlier call is open.
func (c *conversation) result(entry string) *message.Message {
	for i := len(c.origins) - 1; i >= 0; i-- {
		if c.origins[i].entry == entry && i < len(c.messages) {
			return &c.messages[i]
		}
	}
	for _, p := range c.pending {
		if p.id == entry {
			return p.msg
		}
	}
	return nil
}
