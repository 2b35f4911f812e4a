package session

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"agentd/message"
)

func picture(n int) message.Block {
	return message.Image(base64.StdEncoding.EncodeToString(make([]byte, n)), "image/png")
}

// count is how many images a conversation has, and how many texts that stand for one.
func count(msgs []message.Message) (images, gone int) {
	for _, m := range msgs {
		for _, b := range m.Content {
			if b.Type == message.BlockImage {
				images++
			} else if strings.Contains(b.Text, "left out") {
				gone++
			}
		}
	}
	return images, gone
}

func TestFitGivesWhatFitsBack(t *testing.T) {
	msgs := []message.Message{message.User("hi"), assistant("toolUse", call("1"), call("2")), result("1"), result("2"), {Role: message.RoleUser, Content: []message.Block{picture(9)}}}
	if got := Fit(msgs, &Limits{Images: ImageLimits{Count: 1, Bytes: 9}, Window: 1000}); &got[0] != &msgs[0] {
		t.Error("it was copied")
	}
	if got := Fit(nil, &Limits{Window: 1}); got != nil {
		t.Errorf("%v", got)
	}
}

// The newest images stay; when a limit is passed the older half leaves, so that the
// requests between have the same beginning.
func TestManyImagesDoNotBrickTheSession(t *testing.T) {
	for _, tt := range []struct {
		limits ImageLimits
		want   string
	}{
		{ImageLimits{Count: 4}, "1 2 3 4 2 3 4 2 3 4"},
		{ImageLimits{Count: 1}, "1 1 1 1 1 1 1 1 1 1"},
		{ImageLimits{Bytes: 36}, "1 2 3 4 2 3 4 2 3 4"},
		{ImageLimits{Bytes: 8}, "0 0 0 0 0 0 0 0 0 0"},
		{ImageLimits{}, "1 2 3 4 5 6 7 8 9 10"},
	} {
		var msgs []message.Message
		var got []string
		var before []message.Message
		kept := 0
		for range 10 {
			msgs = append(msgs, message.Message{Role: message.RoleUser, Content: []message.Block{message.Text("look"), picture(9)}})
			copied := fmt.Sprint(msgs)
			out := Fit(msgs, &Limits{Images: tt.limits})
			if fmt.Sprint(msgs) != copied {
				t.Fatal("the conversation was changed")
			}
			images, gone := count(out)
			if images+gone != len(msgs) {
				t.Fatalf("%d images and %d texts of %d", images, gone, len(msgs))
			}
			// As long as none leaves, a request goes on from the one before.
			if images > kept && len(before) > 0 && !reflect.DeepEqual(out[:len(before)], before) {
				t.Errorf("%+v: the beginning changed with image %d", tt.limits, len(msgs))
			}
			before, kept = out, images
			got = append(got, fmt.Sprint(images))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%+v: %s, want %s", tt.limits, s, tt.want)
		}
	}
	images, gone := count(Fit([]message.Message{{Role: message.RoleUser, Content: []message.Block{picture(1), picture(1)}}}, &Limits{NoImages: true}))
	if images != 0 || gone != 2 {
		t.Errorf("a model without images gets %d", images)
	}
}

// Some servers count calls from 0 in every reply; others refuse ids that come twice.
func TestEqualCallIDsDoNotBrickTheSession(t *testing.T) {
	msgs := []message.Message{message.User("x"), assistant("toolUse", call("0"), call("1")), result("0"), result("1"),
		assistant("toolUse", call("0"), call("")), result(""), result("0"), assistant("toolUse", call("7"), call("7")), result("7"), result("7"), assistant("toolUse", call("8")), result("8")}
	got := show(Fit(msgs, &Limits{}))
	if want := "u, a 0 1, t 0, t 1, a 0_2 call_2, t call_2, t 0_2, a 7 7_2, t 7, t 7_2, a 8, t 8"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestOneHugeMessageOfThePastIsCut(t *testing.T) {
	huge := strings.Repeat("é ", 50_000)
	msgs := []message.Message{message.User(huge), assistant("toolUse", message.Block{Type: message.BlockToolCall, ID: "1", Name: "t", Arguments: json.RawMessage(`{"x":"` + huge + `"}`)}), result("1")}
	got := Fit(msgs, &Limits{Window: 10_000})
	if text := got[0].Text(); len(text) > 3000 || !strings.HasPrefix(text, "é é") || !strings.Contains(text, "150000 bytes") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
	if args := string(got[1].Content[0].Arguments); args != "{}" {
		t.Errorf("arguments of %d bytes", len(args))
	}
	if msgs[0].Text() != huge {
		t.Error("the conversation was changed")
	}
}

func FuzzFit(f *testing.F) {
	f.Add("u a00 t0 t0 i a0 t0 i i", 1, 40)
	f.Add("a1 t1 a1 t1 u", 0, 1)
	f.Fuzz(func(t *testing.T, script string, images, window int) {
		var msgs []message.Message
		for _, w := range strings.Fields(script) {
			switch w[0] {
			case 'a':
				m := assistant("toolUse")
				for _, c := range w[1:] {
					m.Content = append(m.Content, call(strings.TrimSpace(string(c))))
				}
				msgs = append(msgs, m)
			case 't':
				msgs = append(msgs, result(w[1:]))
			case 'i':
				msgs = append(msgs, message.Message{Role: message.RoleUser, Content: []message.Block{picture(len(w)), message.Text(w)}})
			default:
				msgs = append(msgs, message.User(w))
			}
		}
		msgs = Heal(msgs)
		before := fmt.Sprintf("%+v", msgs)
		l := &Limits{Images: ImageLimits{Count: images}, Window: window}
		out := Fit(msgs, l)
		if fmt.Sprintf("%+v", msgs) != before {
			t.Fatal("the conversation was changed")
		}
		if !reflect.DeepEqual(Fit(out, &Limits{}), out) {
			t.Fatal("what was made to fit does not fit")
		}
		seen, open := map[string]bool{}, map[string]bool{}
		for i := range out {
			for _, c := range out[i].ToolCalls() {
				if seen[c.ID] || c.ID == "" {
					t.Fatalf("call %q twice in %q", c.ID, script)
				}
				seen[c.ID], open[c.ID] = true, true
			}
			if out[i].Role == message.RoleToolResult {
				if !open[out[i].ToolCallID] {
					t.Fatalf("a result for %q in %q: %s", out[i].ToolCallID, script, show(out))
				}
				delete(open, out[i].ToolCallID)
			}
		}
		if len(open) > 0 {
			t.Fatalf("no result for %v in %q", open, script)
		}
	})
}

// A server that gives every call the same id costs a long session no more a reply than
// a short one.
func TestRepeatedIDsAreCheap(t *testing.T) {
	allocs := func(n int) float64 {
		var msgs []message.Message
		for range n {
			msgs = append(msgs, message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Call("call_0", "t", nil)}},
				message.ToolResult("call_0", "t", false, message.Text("x")))
		}
		return testing.AllocsPerRun(1, func() { Fit(msgs, &Limits{}) })
	}
	if short, long := allocs(200), allocs(1600); long > 16*short {
		t.Errorf("%.0f allocations for 200 replies, %.0f for 1600", short, long)
	}
}

// A block of context stays one when its text is cut: it is told again, and is not taken
// for a person's words.
func TestContextIsCutAsContext(t *testing.T) {
	m := message.User("words")
	m.Content = append([]message.Block{{Type: message.BlockText, Text: strings.Repeat("x", 5000), Context: "tree"}}, m.Content...)
	out := LeaveOut(m, LeaveText, "it is too long")
	if b := out.Content[0]; b.Context != "tree" || len(b.Text) >= 5000 || out.Text() != "words" {
		t.Errorf("%+v", out.Content)
	}
}
