package session

import (
	"encoding/json"
	"slices"

	"agentd/internal/store"
)

// Tree is a session's entries as a tree. Its zero value is empty.
type Tree struct {
	// Leaf is where the session stands, "" at its beginning.
	Leaf string
	// Nodes are the entries in the order of their ids.
	Nodes []*Node
	byID  map[string]*Node
}

// Node is an entry in its tree.
type Node struct {
	*store.Entry
	// Children are in the order of their ids.
	Children []*Node
	// Label is what people call the entry, "" for nothing.
	Label string
	// OnPath is whether the entry is between the root and the leaf, both included.
	OnPath bool
	// Orphan is whether the entry's parent is gone; it is shown as a root.
	Orphan bool
}

// NewTree builds the tree of a session's entries.
func NewTree(entries []*store.Entry, leaf string) *Tree {
	t := &Tree{Leaf: leaf, Nodes: make([]*Node, 0, len(entries)), byID: make(map[string]*Node, len(entries))}
	for _, e := range entries {
		n := &Node{Entry: e}
		t.Nodes = append(t.Nodes, n)
		t.byID[e.ID] = n
	}
	slices.SortStableFunc(t.Nodes, func(a, b *Node) int {
		if a.ID < b.ID {
			return -1
		} else if a.ID > b.ID {
			return 1
		}
		return 0
	})
	for _, n := range t.Nodes {
		if n.Parent != "" {
			if p := t.byID[n.Parent]; p != nil {
				p.Children = append(p.Children, n)
			} else {
				n.Orphan = true
			}
		}
		if n.Kind == KindLabel {
			var l Label
			if json.Unmarshal(n.Body, &l) == nil && t.byID[l.Target] != nil {
				t.byID[l.Target].Label = l.Label
			}
		}
	}
	for _, n := range t.Path(leaf) {
		n.OnPath = true
	}
	return t
}

// Node gives an entry, or nil.
func (t *Tree) Node(id string) *Node { return t.byID[id] }

// Roots are the entries without a parent, and those whose parent is gone.
func (t *Tree) Roots() []*Node {
	var roots []*Node
	for _, n := range t.Nodes {
		if n.Parent == "" || n.Orphan {
			roots = append(roots, n)
		}
	}
	return roots
}

// Path gives the entries from the root to one, root first. It ends early, at the
// root's side, where the way breaks or turns in a circle.
func (t *Tree) Path(id string) []*Node {
	var path []*Node
	for n := t.byID[id]; n != nil && len(path) <= len(t.Nodes); n = t.byID[n.Parent] {
		path = append(path, n)
	}
	slices.Reverse(path)
	return path
}

// Whole is whether the way from an entry to its root has no gap and no circle. The
// beginning of a session, "", is always reached.
func (t *Tree) Whole(id string) bool {
	for range len(t.Nodes) + 1 {
		if id == "" {
			return true
		}
		n := t.byID[id]
		if n == nil {
			return false
		}
		id = n.Parent
	}
	return false
}

// Common is the deepest entry that two paths have in common, "" for none.
func (t *Tree) Common(a, b string) string {
	pa, pb := t.Path(a), t.Path(b)
	common := ""
	for i := 0; i < len(pa) && i < len(pb) && pa[i] == pb[i]; i++ {
		common = pa[i].ID
	}
	return common
}

// Left is what a path to one entry has that the path to another has not, oldest
// first: what is left behind when a session goes from one to the other.
func (t *Tree) Left(from, to string) []*store.Entry {
	on := map[*Node]bool{}
	for _, n := range t.Path(to) {
		on[n] = true
	}
	var left []*store.Entry
	for _, n := range t.Path(from) {
		if !on[n] {
			left = append(left, n.Entry)
		}
	}
	return left
}

// Last is the greatest id of all entries, "" if there are none. What is written next
// has to sort behind it: ids of a session are never used twice.
func (t *Tree) Last() string {
	if len(t.Nodes) == 0 {
		return ""
	}
	return t.Nodes[len(t.Nodes)-1].ID
}

// Settings are what changes along a path amount to; "" where nothing was changed.
type Settings struct {
	Model    string `json:"model,omitempty"` // "provider/model", or the model alone
	Mode     string `json:"mode,omitempty"`
	Thinking string `json:"thinking,omitempty"`
}

// SettingsOf gives the settings at the end of a path.
func SettingsOf(path []*Node) (s Settings) {
	for _, n := range path {
		s.change(n.Entry)
	}
	return s
}

// SettingsAt gives the settings at the end of a path of entries.
func SettingsAt(path []*store.Entry) (s Settings) {
	s.Change(path)
	return s
}

// Change takes in what a path goes on with.
func (s *Settings) Change(path []*store.Entry) {
	for _, e := range path {
		s.change(e)
	}
}

// IsSetting is whether entries of a kind change a setting.
func IsSetting(kind string) bool {
	return kind == KindModelChange || kind == KindModeChange || kind == KindThinkingChange
}

func (s *Settings) change(e *store.Entry) {
	switch e.Kind {
	case KindModelChange:
		var b ModelChange
		if json.Unmarshal(e.Body, &b) == nil && b.Model != "" {
			s.Model = b.Name()
		}
	case KindModeChange:
		var b ModeChange
		if json.Unmarshal(e.Body, &b) == nil {
			s.Mode = b.Mode
		}
	case KindThinkingChange:
		var b ThinkingChange
		if json.Unmarshal(e.Body, &b) == nil {
			s.Thinking = b.Level
		}
	}
}
