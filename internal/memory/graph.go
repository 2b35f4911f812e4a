package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"agentd/fault"
)

// Caller calls a tool of a memory server, by the server's own name for it, and gives
// the text of its result.
type Caller func(ctx context.Context, tool string, args json.RawMessage) (string, error)

// GraphTools are the tools that a memory server must have for [NewGraph]: those of
// the reference server @modelcontextprotocol/server-memory, which many others speak.
func GraphTools() []string {
	return []string{"create_entities", "add_observations", "delete_observations", "open_nodes"}
}

// graph keeps each document as an entity of a knowledge graph and each entry as an
// observation of it. The server can not compare before it changes something: two
// processes that change one document at the same time may leave an entry twice, which
// reading makes one again. What is new is there before what is old goes.
type graph struct {
	call    Caller
	project string
	mu      sync.Mutex
}

// NewGraph keeps documents at a memory server. project names the folder that project
// is about.
func NewGraph(call Caller, project string) Keeper { return &graph{call: call, project: project} }

// entity names a document. A tenant's name has no slash.
func (g *graph) entity(p Place) string {
	switch {
	case p.Scope == Project:
		return "agentd/" + p.Tenant + "/project/" + g.project
	case p.User != "":
		return "agentd/" + p.Tenant + "/user/" + p.User
	}
	return "agentd/" + p.Tenant
}

const entityType = "agentd memory"

// sectionRE is how an observation begins: with its section.
var sectionRE = regexp.MustCompile(`^\[([^\[\]]{1,80})\] `)

// observation is an entry as one text.
func observation(e Entry) string {
	text := written(e).lines[0][2:]
	if e.Section != "" {
		text = "[" + e.Section + "] " + text
	}
	return text
}

func (g *graph) ask(ctx context.Context, tool string, args any) (string, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "", &fault.Error{Op: "memory", Kind: fault.Internal, Err: err}
	}
	return g.call(ctx, tool, raw)
}

// load gives the document, and for each entry the observations that it was read of.
func (g *graph) load(ctx context.Context, p Place) (*Document, map[string][]string, error) {
	d := &Document{scope: p.Scope}
	text, err := g.ask(ctx, "open_nodes", map[string]any{"names": []string{g.entity(p)}})
	if err != nil {
		return d, nil, err
	}
	var got struct {
		Entities []struct {
			Name         string   `json:"name"`
			Observations []string `json:"observations"`
		} `json:"entities"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return d, nil, &fault.Error{Op: "memory", Kind: fault.Unavailable, Err: fmt.Errorf("the memory server's open_nodes gave something else than a graph: %w", err),
			Hint: "memory_provider must name a server like @modelcontextprotocol/server-memory."}
	}
	from := map[string][]string{}
	for _, e := range got.Entities {
		if e.Name != g.entity(p) {
			continue
		}
		for _, o := range e.Observations {
			section, rest := Context, oneLineKeepingNote(o)
			if m := sectionRE.FindStringSubmatch(rest); m != nil {
				section, rest = m[1], rest[len(m[0]):]
			}
			read := d.entry(section, rest)
			if read.Text == "" {
				continue
			}
			if read.Origin == "" { // not by agentd: nobody knows who wrote it, or after what
				read.Origin = Tool
			}
			if have, ok := d.Find(read.ID); ok {
				*read = have
			} else {
				d.Add(*read)
			}
			from[read.ID] = append(from[read.ID], o)
		}
	}
	return d, from, nil
}

// oneLineKeepingNote makes what somebody else may have written one line; the note
// behind an entry stays.
func oneLineKeepingNote(o string) string {
	note := ""
	if m := meta.FindString(o); m != "" {
		o, note = o[:len(o)-len(m)], m
	}
	text := o
	if m := sectionRE.FindString(o); m != "" {
		text = o[len(m):]
		return m + oneLine(text) + note
	}
	return oneLine(text) + note
}

// Load implements Keeper.
func (g *graph) Load(ctx context.Context, p Place) (*Document, error) {
	d, _, err := g.load(ctx, p)
	return d, err
}

// Change implements Keeper.
func (g *graph) Change(ctx context.Context, p Place, change func(*Document) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	d, from, err := g.load(ctx, p)
	if err != nil {
		return err
	}
	before := map[string]Entry{}
	for _, e := range d.Entries() {
		before[e.ID] = e
	}
	if err := change(d); err != nil {
		return err
	}
	var add, drop []string
	for _, e := range d.Entries() {
		if have, ok := before[e.ID]; ok && have == e {
			delete(before, e.ID)
			continue
		}
		add = append(add, observation(e))
	}
	for id := range before {
		drop = append(drop, from[id]...)
	}
	if len(add) > 0 {
		// Those that are there stay as they are.
		_, err = g.ask(ctx, "create_entities", map[string]any{"entities": []any{map[string]any{"name": g.entity(p), "entityType": entityType, "observations": []string{}}}})
		if err == nil {
			_, err = g.ask(ctx, "add_observations", map[string]any{"observations": []any{map[string]any{"entityName": g.entity(p), "contents": add}}})
		}
	}
	if err == nil && len(drop) > 0 {
		_, err = g.ask(ctx, "delete_observations", map[string]any{"deletions": []any{map[string]any{"entityName": g.entity(p), "observations": drop}}})
	}
	return err
}
