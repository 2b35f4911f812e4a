package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/client"
)

// hostile is what a model, a tool or a provider may say to take over a terminal: clear
// it, name its window, fake a line, turn the direction of a text around.
const hostile = "x\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\r\n✓ fake line"

// Whoever says it, and whichever command shows it: it does not reach the terminal.
func TestNothingThatIsSaidDrivesTheTerminal(t *testing.T) {
	b := newBench(t)
	q, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	evil := string(q)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.configs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.work, "evil.txt"), []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, turns := range map[string]string{
		"evil": "- text: " + evil + "\n  thinking: " + evil + "\n  tool_calls:\n  - {name: file_read, arguments: {file_path: evil.txt}}\n  - {name: " + evil + ", arguments: {" + evil + ": " + evil + "}}\n" +
			"- tool_calls:\n  - {name: ask_user_question, arguments: {question: " + evil + ", choices: [" + evil + "]}}\n- text: " + evil + "\n",
		"broken": "- text: never said\n  fault: {kind: server, message: " + evil + "}\n",
	} {
		write(name+".yaml", "turns:\n"+turns)
		write(filepath.Join("agents", name+".yaml"), "profile_name: "+name+"\nretry: {base_delay: 1ms}\nprimary_model: {provider: script, model: m, script: "+name+".yaml}\ntools: {builtin: [workspace, ask_user_question]}\n")
	}
	harmless := func(r *result) *result {
		t.Helper()
		for what, s := range map[string]string{"output": r.out, "errors": r.err} {
			s = strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "").Replace(s)
			if i := strings.IndexFunc(s, drives); i >= 0 {
				t.Errorf("agentd %s: %q in its %s", strings.Join(r.args, " "), s[i:min(len(s), i+20)], what)
			}
			for line := range strings.Lines(s) {
				// In the text of a reply lines are as they are, and so is what the caller gives.
				if strings.HasPrefix(line, "✓ fake line") && r.args[0] != "run" && r.args[1] != "answer" && !strings.Contains(strings.Join(r.args, " "), "fake line") {
					t.Errorf("agentd %s: a faked line in its %s:\n%s", strings.Join(r.args, " "), what, s)
				}
			}
		}
		return r
	}
	for _, extra := range [][]string{nil, {"--json"}} {
		harmless(b.agent("evil", hostile, extra...)).exits(exitPaused)
		harmless(b.agent("broken", "x", extra...)).exits(exitFailed)
	}
	all := lines[client.Run](b.here("runs", "ls", "--json", "--limit", "0").exits(0))
	if len(all) != 4 {
		t.Fatalf("%d runs", len(all))
	}
	for _, r := range all {
		for _, args := range [][]string{{"runs", "show"}, {"runs", "events"}, {"runs", "trace"}} {
			harmless(b.here(append(args, r.ID)...)).exits(0)
			harmless(b.here(append(args, r.ID, "--json")...)).exits(0)
		}
		harmless(b.here("runs", "show", r.ID, "--json", "--timeline")).exits(0)
		harmless(b.here("sessions", "show", r.SessionID)).exits(0)
		harmless(b.here("sessions", "show", r.SessionID, "--json")).exits(0)
	}
	for _, i := range lines[client.Interrupt](b.here("interrupts", "ls", "--json").exits(0)) {
		if i.Prompt != hostile { // programs get it as it was said
			t.Errorf("%q", i.Prompt)
		}
		harmless(b.here("interrupts", "show", i.ID)).exits(0)
		harmless(b.here("interrupts", "answer", i.ID, "--answer", hostile)).exits(0)
		harmless(b.here("interrupts", "show", i.ID)).exits(0)
	}
	harmless(b.here("interrupts", "ls", "--all")).exits(0)
	harmless(b.here("sessions", "ls")).exits(0)
	harmless(b.here("runs", "show", hostile)).exits(1)
	harmless(b.here("doctor")).exits(0)
}

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n言葉 é":      "plain\ttext\n言葉 é",
		"\x1b[1mbold\x1b[0m":     "\x1b[1mbold\x1b[0m",
		"\x1b[31mred":            "[31mred",
		"\x1b\x1b[2mdim":         "\x1b[2mdim",
		"a\u009b2Jb\u202ec\rd":   "a2Jbcd",
		"half \xe8\xa8 of it":    "half \ufffd\ufffd of it",
		"\x1b]0;title\x07\x7fok": "]0;titleok",
	} {
		for _, piece := range []int{1, 2, 3, len(in)} {
			var b bytes.Buffer
			s := &safe{w: &b}
			for i := 0; i < len(in); i += piece {
				n := min(piece, len(in)-i)
				if piece < len(in) && strings.ContainsRune(in, '\x1b') && strings.Contains(want, "\x1b") {
					n, i = len(in), 0 // styles are written whole
				}
				if got, err := io.WriteString(s, in[i:i+n]); err != nil || got != n {
					t.Fatal(got, err)
				}
				if n == len(in) {
					break
				}
			}
			if b.String() != want {
				t.Errorf("%q in pieces of %d became %q, not %q", in, piece, b.String(), want)
			}
		}
	}
}

func TestEscaped(t *testing.T) {
	for _, s := range []string{"plain", hostile, "言葉\u2028 \u007f"} {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		out := escaped(raw)
		var back string
		if err := json.Unmarshal(out, &back); err != nil || back != s || bytes.IndexFunc(out, drives) >= 0 {
			t.Errorf("%q became %s, which is %q (%v)", s, out, back, err)
		}
	}
}
