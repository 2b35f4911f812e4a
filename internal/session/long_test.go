package session

import (
	"fmt"
	"reflect"
	"testing"

	"agentd/internal/store"
	"agentd/message"
)

// A long path, which is read in parts, gives what its entries give one by one: in their
// order, without what is damaged, wherever a part begins.
func TestItemsOfLongPaths(t *testing.T) {
	var path []*store.Entry
	var want []Item
	var bad []Problem
	for i := range 4*least + 3 {
		e := &store.Entry{ID: fmt.Sprint(i), Kind: KindMessage, Body: []byte(fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"%d"}]}`, i))}
		switch {
		case i%5 == 1:
			e.Body = e.Body[:10]
			bad = append(bad, Problem{e.ID, "it is damaged"})
		case i%7 == 2:
			e.Kind = KindLabel
		default:
			want = append(want, Item{Entry: e.ID, Message: message.User(e.ID)})
		}
		path = append(path, e)
	}
	items, problems := Items(path)
	if !reflect.DeepEqual(items, want) || !reflect.DeepEqual(problems, bad) {
		t.Errorf("%d items and %d problems, want %d and %d", len(items), len(problems), len(want), len(bad))
	}
}

// What is kept of a conversation is shared: neither healing nor reducing it changes it.
func TestItemsAreNotChanged(t *testing.T) {
	items := []Item{{Entry: "1", Message: message.User("one")}, {Entry: "2", Message: message.User("two")}}
	if got := HealItems(items); &got[0] != &items[0] || cap(got) != len(got) {
		t.Error("what needs no healing is copied, or can be appended to")
	}
	call := Item{Entry: "3", Message: message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Call("c", "n", nil), message.Call("d", "n", nil)}}}
	result := Item{Entry: "4", Message: message.ToolResult("d", "n", false, message.Text("x"))}
	items = append(items, call, result, Item{Entry: "5", Message: message.User("three")})
	was := append([]Item(nil), items...)
	var entries []string
	for _, it := range HealItems(items) {
		entries = append(entries, it.Entry+it.ToolCallID)
	}
	if want := []string{"1", "2", "3", "4d", "c", "5"}; !reflect.DeepEqual(entries, want) {
		t.Errorf("%q, want %q", entries, want)
	}
	if got := Reduce(items, nil, []*store.Quarantine{{EntryID: "2", What: LeaveMessage, Reason: "r"}}); reflect.DeepEqual(got, items) {
		t.Error("nothing was left out")
	}
	if !reflect.DeepEqual(items, was) {
		t.Errorf("the items were changed: %v", items)
	}
}
