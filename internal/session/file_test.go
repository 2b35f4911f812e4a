package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/message"
)

// counter gives rising ids.
func counter(prefix string) func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("%s%06d", prefix, n) }
}

func readFile(t *testing.T, name string) *File {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(bytes.NewReader(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// outlineOf shows a file, one entry a line.
func outlineOf(f *File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q leaf=%s\n", f.Format, f.Title, f.Leaf)
	for _, e := range f.Entries {
		fmt.Fprintf(&b, "%s<-%s %s %s\n", e.ID, e.Parent, e.Kind, e.Body)
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "! %s\n", w)
	}
	return b.String()
}

func TestReadSeedForm(t *testing.T) {
	got := outlineOf(readFile(t, "seed.jsonl"))
	want := `agentd "" leaf=c1
m1<- message {"role":"user","content":[{"type":"text","text":"Hello"}]}
m2<-m1 message {"role":"assistant","content":[{"type":"text","text":"Hi!"}]}
b1<-m2 branch {"label":"Alternative approach"}
m3<-m2 message {"role":"user","content":[{"type":"text","text":"Try again"}]}
c1<-m3 compaction {"firstKeptId":"m3","summary":"..."}
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReadPi(t *testing.T) {
	f := readFile(t, "pi-v3.jsonl")
	if f.Format != "pi" || f.Title != "files of the app" || f.Leaf != "a0000012" || len(f.Entries) != 17 {
		t.Errorf("%s", outlineOf(f))
	}
	if len(f.Warnings) != 2 || !strings.HasPrefix(f.Warnings[0], "line 15: left out") || !strings.HasPrefix(f.Warnings[1], `line 19: there is no entry "gone0000"`) {
		t.Errorf("%q", f.Warnings)
	}
	by := map[string]*store.Entry{}
	for _, e := range f.Entries {
		by[e.ID] = e
	}
	var m message.Message
	if err := json.Unmarshal(by["a0000004"].Body, &m); err != nil || len(m.Content) != 3 || m.Content[0].Text != "I should look." || m.Content[0].Signature != "c2ln" ||
		string(m.Content[2].Arguments) != `{"command":"ls"}` || m.StopReason != message.StopToolUse || m.Usage.Cost.CacheWrite != 4_500_000 || m.Usage.CacheWrite != 1200 {
		t.Errorf("%v %+v", err, m)
	}
	// What stands behind an entry that has none of its own goes on with its parent.
	if by["a0000009"].Parent != "a0000007" || by["a0000011"].Parent != "" {
		t.Errorf("%s", outlineOf(f))
	}
	if by["a0000002"].Kind != KindThinkingChange || by["a0000001"].Kind != KindModelChange || string(by["a000000d"].Body) != `{"summary":"## Goal\nfiles","first_kept":"a0000009","read_files":["a.go"],"tokens_before":1246}` {
		t.Errorf("%s", outlineOf(f))
	}
	path := NewTree(f.Entries, f.Leaf).Path("a000000e")
	var rows []*store.Entry
	for _, n := range path {
		rows = append(rows, n.Entry)
	}
	items, problems := Items(rows)
	var said []string
	for _, it := range items {
		said = append(said, string(it.Role)+":"+it.Text())
	}
	want := "user:list the files|assistant:Looking.|toolResult:a.go\nb.go|assistant:There are two.|user:Ran `go test ./...`\n```\nFAIL\n```\n\nCommand exited with code 1|user:Remember the tests.|user:and now?"
	if got := strings.Join(said, "|"); got != want || len(problems) != 0 {
		t.Errorf("%q %v", got, problems)
	}
	if s := SettingsOf(path); s != (Settings{Model: "anthropic/claude-sonnet-4-5", Thinking: "medium"}) {
		t.Errorf("%+v", s)
	}
}

func TestReadPiVersion1(t *testing.T) {
	got := outlineOf(readFile(t, "pi-v1.jsonl"))
	want := `pi "" leaf=line5
line2<- message {"role":"user","content":[{"type":"text","text":"one"}],"timestamp":1761987601000}
line3<-line2 custom {"type":"note","content":[{"type":"text","text":"hooked"}],"display":true}
line4<-line3 compaction {"summary":"short","first_kept":"line3","tokens_before":9}
line5<-line4 message {"role":"user","content":[{"type":"text","text":"two"}],"timestamp":1761987604000}
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReadSaysWhere(t *testing.T) {
	const head = `{"type":"session","version":1,"format":"agentd","id":"s","timestamp":"2026-01-01T00:00:00.000Z"}` + "\n"
	const one = `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x"}}` + "\n"
	for _, c := range []struct{ name, file, want string }{
		{"nothing", "", "line 1: the file is empty"},
		{"empty lines", "\n\n", "line 1: the file is empty"},
		{"no header", one, "line 1: it has to be of type session"},
		{"no JSON", "hello", "line 1: it is not a session's header"},
		{"newer", strings.Replace(head, `"version":1`, `"version":2`, 1), "line 1: version 2 is newer"},
		{"newer of Pi", `{"type":"session","version":4,"cwd":"/"}`, "line 1: version 4 is newer"},
		{"another format", strings.Replace(head, "agentd", "other", 1), `line 1: format "other"`},
		{"a bad time", strings.Replace(head, "2026-01-01", "yesterday ", 1), "line 1: timestamp"},
		{"metadata", strings.Replace(head, `"id":"s"`, `"id":"s","metadata":[1]`, 1), "line 1: metadata"},
		{"the leaf", strings.Replace(head, `"id":"s"`, `"id":"s","leaf":"b"`, 1) + one, `line 1: leaf: there is no entry "b"`},
		{"no JSON later", head + one + "\n{", "line 4: it is not an entry"},
		{"an id twice", head + one + one, `line 3: id: "a" is taken`},
		{"no id", head + `{"type":"label"}`, "line 2: id: is missing"},
		{"a parent behind", head + strings.Replace(one, "null", `"b"`, 1), `line 2: parentId: there is no entry "b"`},
		{"itself as parent", head + strings.Replace(one, "null", `"a"`, 1), `line 2: parentId`},
		{"no type", head + `{"id":"a"}`, "line 2: type"},
		{"a second header", head + head, "line 2: type"},
		{"no message", head + `{"type":"message","id":"a"}`, "line 2: message: is missing"},
		{"no role", head + `{"type":"message","id":"a","message":{"content":"x"}}`, "line 2: message.role: is missing"},
		{"an image", head + `{"type":"message","id":"a","message":{"role":"user","content":[{"type":"image","data":"!","mimeType":"image/png"}]}}`, "line 2: message.content[0]"},
		{"a call of the user's", head + `{"type":"message","id":"a","message":{"role":"user","content":[{"type":"toolCall","id":"x","name":"rm"}]}}`, "line 2: message.content: only the assistant"},
		{"a label of nothing", head + one + `{"type":"label","id":"b","parentId":"a","data":{"label":"x"}}`, "line 3: data.target: is missing"},
		{"an unknown member", head + one + `{"type":"label","id":"b","parentId":"a","data":{"target":"a","x":1}}`, "line 3: data"},
		{"control characters", head + one + `{"type":"label","id":"b","parentId":"a","data":{"target":"a","label":"\u001b[2J"}}`, "line 3: data.label"},
		{"a custom call", head + `{"type":"custom","id":"b","data":{"type":"x","content":[{"type":"toolCall","name":"rm"}]}}`, "line 2: data.content[0]"},
		{"a label of numbers", head + one + `{"type":"label","id":"b","parentId":"a","data":{"target":"a","label":7}}`, "line 3: data.label: can not be a JSON number"},
		{"a custom number", head + `{"type":"custom","id":"b","data":{"type":"x","content":7}}`, "line 2: data.content: can not be a JSON number"},
		{"no body", head + `{"type":"custom","id":"b","data":[]}`, "line 2: data: can not be a JSON array"},
		{"a role of numbers", head + `{"type":"message","id":"a","message":{"role":7}}`, "line 2: message: role can not be a JSON number"},
		{"a list", head + `[]`, "line 2: it is not an entry: it can not be a JSON array"},
		{"long lines", head + strings.Replace(one, `"x"`, `"`+strings.Repeat("x", 300)+`"`, 1), "line 2: it is too large"},
		{"many entries", head + one + strings.Replace(one, `"a"`, `"b"`, 1) + strings.Replace(one, `"a"`, `"c"`, 1) + strings.Replace(one, `"a"`, `"d"`, 1), "line 5: it is too large: the file has more than 3 entries"},
		{"large files", head + strings.Repeat("\n", 2000), "it is too large: the file has more than 1500 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.file), &FileLimits{Line: 250, Entries: 3, Bytes: 1500})
			var at *LineError
			if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// A custom entry says what models are shown as a message does, also in one text.
func TestACustomContentThatIsAText(t *testing.T) {
	for data, want := range map[string]string{
		`{"type":"x","content":"the door is open"}`: `{"type":"x","content":[{"type":"text","text":"the door is open"}]}`,
		`{"type":"x","content":""}`:                 `{"type":"x"}`,
		`{"type":"x","content":null}`:               `{"type":"x"}`,
	} {
		if got, err := CheckData(KindCustom, json.RawMessage(data)); err != nil || string(got) != want {
			t.Errorf("%s: %s %v", data, got, err)
		}
	}
}

// grow makes a tree of n entries of all kinds.
func grow(rnd *rand.Rand, n int) (*store.Session, []*store.Entry) {
	s := &store.Session{ID: "ses_x", Title: "a <title> & é", Metadata: json.RawMessage(`{"a":[1,2]}`), Created: 1_772_355_601_234}
	next := counter("e")
	texts := []string{"x", "", "line\nline", "<b>&\u2028 \"q\" 🙂", strings.Repeat("long ", 100)}
	var out []*store.Entry
	some := func() string {
		if len(out) == 0 || rnd.IntN(10) == 0 {
			return ""
		}
		return out[rnd.IntN(len(out))].ID
	}
	for range n {
		e := &store.Entry{ID: next(), Parent: s.Leaf, Created: 1_772_355_601_234 + int64(len(out))}
		if rnd.IntN(4) == 0 {
			e.Parent = some()
		}
		if rnd.IntN(3) == 0 {
			e.RunID = []string{"run_a", "run_b", "from:run_c"}[rnd.IntN(3)]
		}
		text := texts[rnd.IntN(len(texts))]
		data := func(kind string, v any) {
			raw, err := json.Marshal(v)
			if err == nil {
				e.Kind = kind
				e.Body, err = CheckData(kind, raw)
			}
			if err != nil {
				panic(err)
			}
		}
		switch rnd.IntN(12) {
		case 0:
			data(KindBranch, Branch{From: some(), Label: "try " + fmt.Sprint(rnd.IntN(3))})
		case 1:
			data(KindBranchSummary, BranchSummary{Branch: Branch{From: some()}, Summary: "s" + text})
		case 2:
			target := some()
			if target == "" {
				target = e.ID
			}
			data(KindLabel, Label{Target: target, Label: []string{"", "here"}[rnd.IntN(2)]})
		case 3:
			data(KindModelChange, ModelChange{Provider: "p", Model: "m"})
		case 4:
			data(KindModeChange, ModeChange{Mode: "plan"})
		case 5:
			data(KindCustom, Custom{Type: "t", Data: json.RawMessage(`{"id":"e000001","x":"` + "é" + `"}`), Content: []message.Block{message.Text("y" + text)}})
		case 6:
			data(KindCompaction, map[string]any{"summary": text, "firstKeptId": some(), "shortened": []string{some(), "no id"}, "tokensBefore": 7})
		case 7:
			e.Kind = KindRollback
		default:
			m := message.Message{Role: message.RoleUser, Content: []message.Block{message.Text(text)}, Timestamp: 5}
			if rnd.IntN(2) == 0 {
				m = assistant(message.StopToolUse, message.Block{Type: message.BlockThinking, Text: "t", Signature: "s"}, message.Call("c1", "t", json.RawMessage(`{"b": 1,"a":[2]}`)))
				m.Usage = &message.Usage{Input: 1, Cost: message.Cost{Total: 3}}
			}
			var err error
			if e.Kind, e.Body, err = KindMessage, nil, nil; err == nil {
				e.Body, err = bodyOf(&m)
			}
			if err != nil {
				panic(err)
			}
		}
		out = append(out, e)
		s.Leaf = e.ID
	}
	return s, out
}

// What is written is read again as it was, under other ids too, and writing that
// again gives the same file.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s, entries := grow(rnd, rnd.IntN(40))
		var first bytes.Buffer
		if err := Write(&first, s, entries); err != nil {
			t.Fatal(err)
		}
		f, err := Read(bytes.NewReader(first.Bytes()), nil)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, first.Bytes())
		}
		if f.Title != s.Title || string(f.Metadata) != string(s.Metadata) || f.Leaf != s.Leaf || f.Created != s.Created || len(f.Entries) != len(entries) {
			t.Fatalf("seed %d: %s", seed, outlineOf(f))
		}
		for i, e := range f.Entries {
			want := *entries[i]
			want.RunID = strings.TrimPrefix(want.RunID, Foreign)
			if !reflect.DeepEqual(*e, want) {
				t.Fatalf("seed %d: entry\n%+v %s\nwas\n%+v %s", seed, e, e.Body, want, want.Body)
			}
		}
		// Under other ids, and back.
		there, _ := Rename(f.Entries, "ses_y", counter("z"))
		back, ids := Rename(there, "ses_x", counter("e"))
		var second bytes.Buffer
		leaf := ""
		if s.Leaf != "" {
			leaf = ids[fmt.Sprintf("z%06d", len(there))]
		}
		if err := Write(&second, &store.Session{ID: s.ID, Title: f.Title, Metadata: f.Metadata, Leaf: leaf, Created: f.Created}, back); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Fatalf("seed %d: first\n%s\nsecond\n%s", seed, first.String(), second.String())
		}
	}
}

// What is damaged, or hangs in the air, does not make a file that can not be read.
func TestWriteDamaged(t *testing.T) {
	ok := json.RawMessage(`{"role":"user","content":[]}`)
	entries := []*store.Entry{{ID: "a", Kind: KindMessage, Body: json.RawMessage("junk")}, {ID: "b", Parent: "a", Kind: KindMessage, Body: ok},
		{ID: "c", Parent: "gone", Kind: KindMessage, Body: ok}, {ID: "d", Parent: "c", Kind: KindMessage, Body: ok}, {ID: "e", Parent: "b", Kind: KindLabel, Body: json.RawMessage(`{"target":"gone","label":"x"}`)}}
	var out bytes.Buffer
	if err := Write(&out, &store.Session{ID: "s", Leaf: "d"}, entries); err != nil {
		t.Fatal(err)
	}
	f, err := Read(&out, nil)
	if err != nil || len(f.Entries) != 3 || f.Leaf != "e" || f.Entries[0].Kind != KindCustom {
		t.Errorf("%v %+v", err, f)
	}
}

// FuzzRead holds that any file is read or refused with its line, and that what was
// read can be written and read again.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"pi-v3.jsonl", "pi-v1.jsonl", "seed.jsonl"} {
		raw, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	s, entries := grow(rand.New(rand.NewPCG(1, 1)), 20)
	var own bytes.Buffer
	if err := Write(&own, s, entries); err != nil {
		f.Fatal(err)
	}
	f.Add(own.Bytes())
	extra, err := AppendQuarantine(bytes.Clone(own.Bytes()), &store.Quarantine{EntryID: entries[0].ID, What: LeaveText})
	for _, data := range []string{"text", "\xff"} {
		if err == nil {
			extra, err = AppendArtifact(extra, newArtifact(data, "a"))
		}
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(extra)
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, err := Read(bytes.NewReader(raw), &FileLimits{Line: 4096, Entries: 50, Bytes: 1 << 16})
		if err != nil {
			var at *LineError
			if !errors.As(err, &at) || at.Line < 1 {
				t.Fatalf("%v", err)
			}
			return
		}
		rows, ids := Rename(file.Entries, "ses_n", counter("n"))
		tree := NewTree(rows, ids[file.Leaf])
		if file.Leaf != "" && !tree.Whole(ids[file.Leaf]) {
			t.Fatal("a leaf without a way")
		}
		var out bytes.Buffer
		if err := Write(&out, &store.Session{ID: "ses_n", Title: file.Title, Metadata: file.Metadata, Leaf: ids[file.Leaf]}, rows); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&out, nil)
		if err != nil || len(again.Entries) != len(rows) {
			t.Fatalf("%v: %d of %d\n%s", err, len(again.Entries), len(rows), out.Bytes())
		}
		for _, a := range file.Artifacts {
			if err := a.Check(); err != nil || a.Size != int64(len(a.Data)) {
				t.Fatalf("%v %+v", err, a)
			}
		}
		for _, q := range file.Quarantine {
			if ids[q.EntryID] == "" {
				t.Fatalf("%+v", q)
			}
		}
		Items(rows)
		for i, e := range again.Entries {
			want := *rows[i]
			want.RunID, want.SessionID = e.RunID, ""
			if !reflect.DeepEqual(*e, want) {
				t.Fatalf("%+v %s\n%+v %s", e, e.Body, want, want.Body)
			}
		}
	})
}

// What says the same as an id by chance is left alone: only what names entries is renamed.
func TestRenameNamesEntriesOnly(t *testing.T) {
	entries := []*store.Entry{{ID: "a.go", Kind: KindMessage, Body: json.RawMessage(`{}`)}, {ID: "manual", Parent: "a.go", Kind: KindMessage, Body: json.RawMessage(`{}`)},
		{ID: "c", Parent: "manual", Kind: KindCompaction, Body: json.RawMessage(`{"summary":"a.go","first_kept":"manual","shortened":["manual"],"read_files":["a.go"],"reason":"manual"}`)},
		{ID: "s", Parent: "c", Kind: KindBranchSummary, Body: json.RawMessage(`{"from":"c","summary":"x","read_files":["a.go"],"model":"manual"}`)},
		{ID: "n", Parent: "s", Kind: "newer", Body: json.RawMessage(`{"of":"c"}`)}}
	n := 0
	out, _ := Rename(entries, "ses", func() string { n++; return fmt.Sprint("e", n) })
	for i, want := range map[int]string{2: `{"first_kept":"e2","read_files":["a.go"],"reason":"manual","shortened":["e2"],"summary":"a.go"}`,
		3: `{"from":"e3","summary":"x","read_files":["a.go"],"model":"manual"}`, 4: `{"of":"e3"}`} {
		if got := string(out[i].Body); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A message that claims to be a summary is a message: it would be left out of the next one.
func TestAMessageIsNoSummary(t *testing.T) {
	for _, details := range []string{summaryDetails, branchDetails} {
		m := message.User("all that counts")
		m.Details = json.RawMessage(details)
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		items, _ := Items([]*store.Entry{{ID: "1", Kind: KindMessage, Body: body}})
		if len(items) != 1 || Retold(&items[0].Message) {
			t.Errorf("%+v", items)
		}
	}
}

// Compactions of Pi keep what they kept, and their files, whatever of the file is not an
// entry here.
func TestPiCompactions(t *testing.T) {
	const file = `{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}
{"type":"session_info","id":"0","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","name":"T"}
{"type":"message","id":"1","parentId":"0","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"First."}]}}
{"type":"session_info","id":"3","parentId":"2","timestamp":"2026-01-01T00:00:00.000Z","name":"U"}
{"type":"message","id":"4","parentId":"3","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"two"}}
{"type":"compaction","id":"5","parentId":"4","timestamp":"2026-01-01T00:00:00.000Z","summary":"Sum.\n\n<read-files>\na.go\n</read-files>\n\n<modified-files>\nb.go\n</modified-files>","firstKeptEntryId":"FIRST","tokensBefore":7,"details":{"readFiles":["a.go"],"modifiedFiles":["b.go"]}}
`
	for first, want := range map[string]string{"0": "one|First.|two", "1": "one|First.|two", "3": "two", "4": "two", "9": "", "2": "First.|two"} {
		f, err := Read(strings.NewReader(strings.Replace(file, "FIRST", first, 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		items, made, problems := Context(f.Entries)
		if made == nil || len(problems) > 0 || made.Summary != "Sum." || made.TokensBefore != 7 || strings.Join(made.ReadFiles, " ") != "a.go" || strings.Join(made.ModifiedFiles, " ") != "b.go" {
			t.Fatalf("from %s: %+v, %v", first, made, problems)
		}
		var got []string
		for _, it := range items[1:] {
			got = append(got, it.Text())
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("from %s: %q, want %q", first, s, want)
		}
	}
}
