package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"agentd/internal/store"
)

const ownHead = `{"type":"session","version":1,"format":"agentd","id":"s","timestamp":"2026-01-01T00:00:00.000Z"}` + "\n"

func newArtifact(data, name string) *Artifact {
	sum := sha256.Sum256([]byte(data))
	return &Artifact{ID: hex.EncodeToString(sum[:]), Name: name, MimeType: "text/plain", RunID: "run_a", CallID: "c1", Created: 1_772_355_601_234, Size: int64(len(data)), Data: []byte(data)}
}

// furnish gives what belongs to some entries.
func furnish(rnd *rand.Rand, entries []*store.Entry) (left []*store.Quarantine, artifacts []*Artifact) {
	for i, e := range entries {
		switch rnd.IntN(6) {
		case 0:
			left = append(left, &store.Quarantine{EntryID: e.ID, What: []string{LeaveImages, LeaveText, LeaveMessage}[rnd.IntN(3)], Reason: "a\nb", RunID: "run_a", Created: int64(i + 1)})
		case 1:
			text := []string{"x\n\x00\x1b<&>\u2028\ufffd🙂", "\xff\xfe\x00", strings.Repeat("é", 1000)}[rnd.IntN(3)]
			artifacts = append(artifacts, newArtifact(fmt.Sprint(text, i), fmt.Sprint("a ", i, ".txt")))
		}
	}
	if rnd.IntN(3) == 0 {
		a := newArtifact("", "")
		a.Data = []byte{}
		artifacts = append(artifacts, a)
	}
	return left, artifacts
}

func appendExtras(t *testing.T, file []byte, left []*store.Quarantine, artifacts []*Artifact) []byte {
	t.Helper()
	var err error
	for _, q := range left {
		if file, err = AppendQuarantine(file, q); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range artifacts {
		if file, err = AppendArtifact(file, a); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// What belongs to entries is read as it was written, byte for byte.
func TestRoundTripOfExtras(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		s, entries := grow(rnd, rnd.IntN(40))
		left, artifacts := furnish(rnd, entries)
		var b bytes.Buffer
		if err := Write(&b, s, entries); err != nil {
			t.Fatal(err)
		}
		file := appendExtras(t, b.Bytes(), left, artifacts)
		f, err := Read(bytes.NewReader(file), nil)
		if err != nil || len(f.Warnings) > 0 || len(f.Entries) != len(entries) || f.Leaf != s.Leaf {
			t.Fatalf("seed %d: %v %q\n%s", seed, err, f.Warnings, file)
		}
		if !reflect.DeepEqual(f.Quarantine, left) || !reflect.DeepEqual(f.Artifacts, artifacts) {
			t.Fatalf("seed %d:\n%s", seed, file)
		}
	}
}

// Lines that are damaged, or of a newer agentd, are told, and the conversation is read.
func TestExtrasThatAreLeftOut(t *testing.T) {
	const one = `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x"}}` + "\n"
	good := newArtifact("content", "a.txt")
	line := string(appendExtras(t, nil, nil, []*Artifact{good}))
	gone := *good
	gone.Without = "it expired"
	for _, c := range []struct{ name, lines, want string }{
		{"an unknown kind", `{"type":"hologram","id":"h","x":1}`, `line 3: lines of type "hologram" are not known`},
		{"another content", strings.Replace(line, "content", "contents", 1), "line 3: the artifact is left out: " + good.ID + ": its content is damaged"},
		{"no content", string(appendExtras(t, nil, nil, []*Artifact{&gone})), "came without its content: it expired"},
		{"no reason", strings.Replace(line, `"text":"content"`, `"x":1`, 1), "the file does not say why"},
		{"no base64", strings.Replace(line, `"text":"content"`, `"data":"?"`, 1), "data: illegal base64"},
		{"no id", strings.Replace(line, good.ID, "x", 1), `id: "x" is no SHA-256`},
		{"an id otherwise", strings.Replace(line, good.ID, strings.ToUpper(good.ID), 1), "is no SHA-256"},
		{"a name with escapes", strings.Replace(line, "a.txt", `\u001b[2J`, 1), "name: has control characters"},
		{"a bad time", strings.Replace(line, "2026-", "yesterday", 1), "timestamp"},
		{"no object within", strings.Replace(line, `"bytes":7`, `"bytes":"7"`, 1), "it can not be read"},
		{"twice", line + line, "line 4: the artifact is left out: " + good.ID + " is in an earlier line"},
		{"too large", strings.TrimSpace(string(appendExtras(t, nil, nil, []*Artifact{newArtifact(strings.Repeat("x", 101), "")}))), "has 101 bytes, and all of a file have at most 100"},
		{"left out of nothing", `{"type":"quarantine","entry":"b","what":"text"}`, `there is no entry "b"`},
		{"left out of an artifact", line + `{"type":"quarantine","entry":"` + good.ID + `","what":"text"}`, "there is no entry"},
		{"left out somehow", `{"type":"quarantine","entry":"a","what":"all"}`, `what: "all" is not known`},
		{"left out twice", strings.Repeat(`{"type":"quarantine","entry":"a","what":"text"}`+"\n", 2), "line 4: what requests leave out is not taken over: it is said"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Read(strings.NewReader(ownHead+one+c.lines), &FileLimits{Artifacts: 100})
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Entries) != 1 || f.Leaf != "a" || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], c.want) {
				t.Errorf("%+v", f)
			}
		})
	}
	// Entries of kinds that this agentd does not know have a parent, or none, and stay.
	f, err := Read(strings.NewReader(ownHead+one+`{"type":"artifact","id":"b","parentId":"a","data":{"x":1}}`+"\n"+`{"type":"hologram","id":"c","parentId":null}`), nil)
	if err != nil || len(f.Entries) != 3 || len(f.Warnings)+len(f.Artifacts) > 0 || f.Leaf != "c" {
		t.Errorf("%v %+v", err, f)
	}
	_, err = Read(strings.NewReader(ownHead+line+string(appendExtras(t, nil, nil, []*Artifact{newArtifact("b", "")}))), &FileLimits{Entries: 1})
	if err == nil || !strings.Contains(err.Error(), "line 3: it is too large") {
		t.Errorf("%v", err)
	}
}

// What a key asked for is of its session alone.
func TestFilesAndCopiesForgetKeys(t *testing.T) {
	e := &store.Entry{ID: "b", Kind: KindBranchSummary, Body: []byte(`{"from":"a","label":"l","asked":{"key":"k","request":"r"},"summary":"says \"asked\""}`)}
	if a := AskedOf(e); a == nil || a.Key != "k" || a.Request != "r" {
		t.Errorf("%+v", a)
	}
	var file bytes.Buffer
	if err := Write(&file, &store.Session{ID: "s", Leaf: "b"}, []*store.Entry{e}); err != nil {
		t.Fatal(err)
	}
	copies, _ := Rename([]*store.Entry{e}, "t", counter("c"))
	const want = `{"from":"a","label":"l","summary":"says \"asked\""}`
	if string(copies[0].Body) != want || !strings.Contains(file.String(), want) {
		t.Errorf("%s\n%s", copies[0].Body, file.String())
	}
	other := &store.Entry{Kind: KindCustom, Body: []byte(`{"type":"x","data":{"asked":{"key":"k"}}}`)}
	if AskedOf(other) != nil || string(Unasked(other.Kind, other.Body)) != string(other.Body) {
		t.Errorf("%s", other.Body)
	}
}
