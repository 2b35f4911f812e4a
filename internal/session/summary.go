package session

import (
	_ "embed"
	"fmt"
	"strings"

	"agentd/message"
)

// SummaryPrompt is the instruction that ends a request for a summary. It says what
// the summary contains, under which headings, and between which tags it is written.
//
//go:embed summary.md
var SummaryPrompt string

// Extract takes the summary out of a reply: what is between its tags, else all of it
// without the analysis ahead of it. The summary and the analysis may themselves speak of
// tags. ok is whether it is a summary: a reply with neither the tags nor any heading that
// was asked for, or two of its own, is something else, such as a refusal, a question, or an
// answer to what stands in the conversation.
func Extract(text string) (summary string, ok bool) {
	summary, tagged := extract(text)
	return summary, summary != "" && (tagged || headed(summary))
}

// headed is whether a text has a heading of [SummaryPrompt], or at least two others, such as
// those in another language.
func headed(text string) bool {
	asked := map[string]bool{}
	for line := range strings.SplitSeq(SummaryPrompt, "\n") {
		if h := heading(line); h != "" {
			asked[h] = true
		}
	}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		h := heading(line)
		if asked[h] {
			return true
		}
		if h != "" {
			n++
		}
	}
	return n >= 2
}

// heading is what a line says that is a heading in Markdown, by # or as bold words alone,
// in small letters, or "".
func heading(line string) string {
	line = strings.TrimSpace(line)
	words := strings.TrimLeft(line, "#")
	if hashes := len(line) - len(words); hashes == 0 || hashes > 6 || !strings.HasPrefix(words, " ") {
		bold, found := strings.CutPrefix(line, "**")
		if bold = strings.TrimSuffix(bold, ":"); !found || !strings.HasSuffix(bold, "**") {
			return ""
		}
		words = bold
	}
	return strings.ToLower(strings.Trim(words, "*: \t"))
}

func extract(text string) (summary string, tagged bool) {
	const open, shut, thought = "<summary>", "</summary>", "</analysis>"
	begin := -1
	for at := 0; begin < 0; {
		i := strings.Index(text[at:], thought)
		if i < 0 {
			break
		}
		at += i + len(thought)
		if rest := strings.TrimLeft(text[at:], " \t\r\n"); strings.HasPrefix(rest, open) {
			begin = len(text) - len(rest)
		}
	}
	if begin < 0 {
		from := 0
		if i := strings.LastIndex(text, thought); i >= 0 {
			from = i + len(thought)
		} else if strings.HasPrefix(strings.TrimSpace(text), "<analysis>") && !strings.Contains(text, open) {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "<analysis>")), false // it was cut off
		}
		i := strings.Index(text[from:], open)
		if i < 0 {
			return strings.TrimSpace(text[from:]), false
		}
		begin = from + i
	}
	text = text[begin+len(open):]
	if i := strings.LastIndex(text, shut); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSpace(text), true
}

// Excerpts makes a summary of what was said without asking a model: it is worse, and
// always there. It has at most so many bytes, about. Where the last messages are results
// that the model has not seen, their beginnings are in it.
func Excerpts(msgs []message.Message, earlier string, limit int) string {
	each := max(limit/24, 80)
	var b strings.Builder
	b.WriteString("(No model could be asked for a summary; these are excerpts.)\n")
	if earlier != "" {
		b.WriteString("\n## Earlier summary\n" + middleOut(earlier, limit/3) + "\n")
	}
	var asked []string
	answer := ""
	for i := range msgs {
		m := &msgs[i]
		text := strings.TrimSpace(m.Text())
		switch {
		case text == "" || m.Custom():
		case m.Role == message.RoleUser:
			asked = append(asked, "- "+middleOut(text, each))
		case m.Role == message.RoleAssistant:
			answer = text
		}
	}
	if n := len(asked); n > 12 {
		asked = append(append(asked[:2:2], fmt.Sprintf("- (%d more messages)", n-12)), asked[n-10:]...)
	}
	if len(asked) > 0 {
		b.WriteString("\n## User Messages\n" + strings.Join(asked, "\n") + "\n")
	}
	if answer != "" {
		b.WriteString("\n## Current Work\nThe last that was said: " + middleOut(answer, each*4) + "\n")
	}
	if n := len(msgs); n > 0 && msgs[n-1].Role == message.RoleToolResult {
		from := n
		for from > 0 && msgs[from-1].Role == message.RoleToolResult {
			from--
		}
		b.WriteString("\n## Results Not Yet Answered\n")
		left := limit / 3
		for i := from; i < n; i++ {
			line := "- " + msgs[i].ToolName + ": " + middleOut(strings.TrimSpace(msgs[i].Text()), max(left/(n-i), 40)) + imageNote(&msgs[i])
			if left -= len(line) + 1; left < 0 {
				fmt.Fprintf(&b, "- (%d more results)\n", n-i)
				break
			}
			b.WriteString(line + "\n")
		}
	}
	return middleOut(b.String(), limit)
}
