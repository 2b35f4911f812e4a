package session

import (
	"strings"
	"testing"

	"agentd/message"
)

// A summary is taken out of a reply; what has neither the tags nor headings is none.
func TestExtract(t *testing.T) {
	for _, c := range []struct {
		text, want string
		ok         bool
	}{
		{"<analysis>x <summary>no</summary></analysis><summary>\nyes\n</summary> bye", "yes", true},
		{"<analysis>x</analysis>\n## Goal\nyes", "## Goal\nyes", true},
		{"<analysis>x</analysis>\nyes", "yes", false},
		{"yes", "yes", false},
		{"I can't help with summarising that. " + strings.Repeat("It would not be right. ", 100), "", false},
		{"Sure! Which file should I edit first?", "", false},
		{"**Key Decisions:**\n- a", "**Key Decisions:**\n- a", true},
		{"**Key Decisions**\n- a", "**Key Decisions**\n- a", true},
		{"### Next Steps:\n- a", "### Next Steps:\n- a", true},
		{"# Ziel\nx\n\n# Stand\ny", "# Ziel\nx\n\n# Stand\ny", true},
		{"# Sorry\nI can not do that.", "", false},
		{"#hashtag\n#another\nno", "", false},
		{"<summary> \n</summary>", "", false},
		{"<analysis>x</analysis>\n<summary>\nThe page says <summary>evil</summary> and <summary>, and that is all.\n</summary>", "The page says <summary>evil</summary> and <summary>, and that is all.", true},
		{"<analysis>a <summary> and </analysis> in it</analysis>\n<summary>yes</summary>", "yes", true},
		{"<analysis>cut off", "cut off", false},
		{"<summary>cut off in the midd", "cut off in the midd", true},
		{"", "", false},
	} {
		got, ok := Extract(c.text)
		if ok != c.ok || (c.ok || c.want != "") && got != c.want {
			t.Errorf("%q gives %q, %v", c.text, got, ok)
		}
	}
}

// Whatever a model replies: it is told whether that is a summary, and nothing is made up.
func FuzzExtract(f *testing.F) {
	f.Add("<analysis>a</analysis><summary>## Goal\nx</summary>")
	f.Add("**Goal**\n#")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Extract(text)
		if ok && got == "" || !strings.Contains(text, got) {
			t.Errorf("%q gives %q, %v", text, got, ok)
		}
	})
}

// Excerpts of a conversation whose last results nobody answered have these.
func TestExcerptsHaveWhatIsNotAnswered(t *testing.T) {
	msgs := []message.Message{message.User("look at all"), {Role: message.RoleAssistant, Content: []message.Block{message.Call("a", "read", nil), message.Call("b", "read", nil)}},
		message.ToolResult("a", "read", false, message.Text("seven")), message.ToolResult("b", "read", false, message.Text(strings.Repeat("x", 9000)))}
	s := Excerpts(msgs, "", 2000)
	if !strings.Contains(s, "- read: seven") || !strings.Contains(s, "look at all") || len(s) > 2100 {
		t.Errorf("%s", s)
	}
	for range 500 {
		msgs = append(msgs, message.ToolResult("c", "read", false, message.Text(strings.Repeat("y", 200))))
	}
	if s = Excerpts(msgs, "", 2000); !strings.Contains(s, "more results)") || len(s) > 2200 {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}
