package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd"
	"agentd/event"
)

var update = flag.Bool("update", false, "write the golden files")

// bench is a folder to work in with configuration, data and a clean environment.
type bench struct {
	t                   *testing.T
	data, configs, work string
	// terminal is whether output is for people.
	terminal bool
	stdin    string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, data: filepath.Join(t.TempDir(), "agentd"), configs: t.TempDir(), work: t.TempDir(), terminal: true, stdin: "from standard input"}
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(b.work, "README.md"), "# The example\n")
	write(filepath.Join(b.work, "main.go"), "package main // TODO: more\n")
	// Replies begin after a while, so that the commits before them are
	// through and their text comes in one piece.
	turn := "  usage: {input: 100, output: 10, cache_read: 300}\n"
	for name, turns := range map[string]string{
		"demo": "",
		"talk": "- when: {user: 'Summarise the conversation above'}\n  text: '<summary>They looked.</summary>'\n- text: I will look.\n  tool_calls:\n  - {name: glob, arguments: {pattern: '*'}}\n  - {name: file_read, arguments: {file_path: missing.txt}}\n" + turn +
			"- text: |-\n    Two lines\n    of an answer.\n" + turn,
		"ask": "- text: I need to know something.\n  tool_calls:\n  - {name: ask_user_question, arguments: {question: 'Which colour?', choices: [red, blue]}}\n" + turn +
			"- text: 'Then it is {{.Last.Text}}.'\n" + turn,
		"twice": "- tool_calls:\n  - {name: ask_user_question, arguments: {question: 'First?'}}\n  - {name: ask_user_question, arguments: {question: 'Second?'}}\n" + turn +
			"- tool_calls:\n  - {name: ask_user_question, arguments: {question: 'Third?'}}\n" + turn + "- text: Thanks.\n" + turn,
		"boss": "- tool_calls:\n  - {name: create_subagent, arguments: {subagent_type: ask, prompt: 'Find out.'}}\n" + turn +
			"- text: 'My subagent: {{.Last.Text}}'\n" + turn,
		"fail":  "- text: never said\n  fault: {kind: auth}\n",
		"stuck": "- text: one two three four\n  latency: {size: 4}\n  fault: {kind: stall, after: 2}\n",
	} {
		profile := "profile_name: " + name + "\nprofile_version: 1.2.3\nprimary_model: {provider: script, model: m"
		if turns != "" {
			profile += ", script: " + name + ".yaml"
			write(filepath.Join(b.configs, name+".yaml"), "latency: {first: 50ms, size: 1000}\nturns:\n"+turns)
		}
		write(filepath.Join(b.configs, "agents", name+".yaml"), profile+"}\ntools: {builtin: [workspace, ask_user_question]}\napproval_mode: never\ntool_execution: sequential\n"+map[string]string{"boss": "subagents: [ask]\n"}[name])
	}
	t.Chdir(b.work)
	t.Setenv("COLUMNS", "300") // nothing is cut, whatever took how long
	t.Setenv("XDG_DATA_HOME", filepath.Dir(b.data))
	for _, name := range []string{"AGENTD_SERVER", "AGENTD_KEY", "AGENTD_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// result is what a command did.
type result struct {
	t        *testing.T
	args     []string
	code     int
	out, err string
}

// run runs a command to its end.
func (b *bench) run(args ...string) *result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	return b.runIn(ctx, &buffer{}, args...)
}

func (b *bench) runIn(ctx context.Context, out *buffer, args ...string) *result {
	b.t.Helper()
	stderr := out.other
	if stderr == nil {
		stderr = &buffer{}
	}
	code := Main(args, Streams{In: strings.NewReader(b.stdin), Out: out, Err: stderr, Terminal: b.terminal, Context: ctx})
	out.doing.Wait()
	stderr.doing.Wait()
	if ctx.Err() == context.DeadlineExceeded {
		b.t.Fatalf("agentd %s did not end:\n%s%s", strings.Join(args, " "), out.String(), stderr.String())
	}
	return &result{t: b.t, args: args, code: code, out: out.String(), err: stderr.String()}
}

// agent runs a directive with one of the bench's profiles.
func (b *bench) agent(profile, directive string, more ...string) *result {
	b.t.Helper()
	return b.run(append([]string{"run", "--data", b.data, "--configs", b.configs, "-p", profile, directive}, more...)...)
}

// here runs a command on the bench's data folder.
func (b *bench) here(args ...string) *result {
	b.t.Helper()
	return b.run(append(args, "--data", b.data, "--configs", b.configs)...)
}

// asJSON runs f with output for programs.
func (b *bench) asJSON(f func() *result) *result {
	b.terminal = false
	defer func() { b.terminal = true }()
	return f()
}

// open opens the data folder as a server does.
func (b *bench) open() *agentd.Runtime {
	b.t.Helper()
	rt, err := agentd.Open(b.t.Context(), agentd.Config{Configs: b.configs, Data: b.data})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = rt.Close() }) // some tests close it before
	return rt
}

func (r *result) exits(code int) *result {
	r.t.Helper()
	if r.code != code {
		r.t.Fatalf("agentd %s exited with %d, not %d\n%s\n%s", strings.Join(r.args, " "), r.code, code, r.out, r.err)
	}
	return r
}

// says checks for texts on standard output, complains on standard error.
func (r *result) says(texts ...string) *result { r.t.Helper(); return r.has(r.out, "output", texts) }

func (r *result) complains(texts ...string) *result {
	r.t.Helper()
	return r.has(r.err, "errors", texts)
}

func (r *result) has(s, what string, texts []string) *result {
	r.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s, text) {
			r.t.Errorf("agentd %s: %q is not in its %s:\n%s", strings.Join(r.args, " "), text, what, s)
		}
	}
	return r
}

// lines decodes the output as JSON, a value a line.
func lines[T any](r *result) []T {
	r.t.Helper()
	var out []T
	for line := range strings.Lines(r.out) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			r.t.Fatalf("agentd %s: %v: %s", strings.Join(r.args, " "), err, line)
		}
		out = append(out, v)
	}
	return out
}

// types lists the types of the events in the output, deltas of one text once.
func (r *result) types() []event.Type {
	r.t.Helper()
	var types []event.Type
	last := int64(0)
	for _, ev := range lines[event.Event](r) {
		if ev.Seq <= last {
			r.t.Errorf("event number %d came after %d", ev.Seq, last)
		}
		last = ev.Seq
		if n := len(types); n == 0 || !ev.Type.Delta() || types[n-1] != ev.Type {
			types = append(types, ev.Type)
		}
	}
	return types
}

// golden compares what people see with a file.
func (r *result) golden(name string) *result {
	r.t.Helper()
	got := normal(r.t, r.out)
	if r.err != "" {
		got += "--- standard error\n" + normal(r.t, r.err)
	}
	path := filepath.Join(golden, name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatalf("%v (go test ./internal/cli -update writes it)", err)
	}
	if got != string(want) {
		r.t.Errorf("agentd %s printed\n%s\nwant (%s; -update writes it)\n%s", strings.Join(r.args, " "), got, path, want)
	}
	return r
}

// golden is the folder of the golden files; tests work in another folder.
var golden = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

var (
	ids      = regexp.MustCompile(`(run_|ses_)[0-9a-z]{26}`)
	times    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	numbers  = regexp.MustCompile(`(?m)^ *\d+(  \d{4}-)`)
	fraction = regexp.MustCompile(`\.\d{3}Z`)
	duration = regexp.MustCompile(`\d+ ms\b|\d+\.\d s\b|after [0-9.]+(ms|s)`)
	bars     = regexp.MustCompile(`(?m)^  [█▓░·× ]{40}  `)
	ruler    = regexp.MustCompile(`(?m)^  0 +\d.*$`)
	places   = regexp.MustCompile(`( --(data|configs|server) \S+)+`)
)

// normal takes out what differs from run to run, and keeps widths where tables
// are.
func normal(t *testing.T, s string) string {
	t.Helper()
	seen := map[string]string{}
	s = ids.ReplaceAllStringFunc(s, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("%s%026d", id[:4], len(seen)+1)
		}
		return seen[id]
	})
	s = numbers.ReplaceAllString(s, "     SEQ$1")
	s = times.ReplaceAllString(s, "2026-01-02T03:04:05")
	s = fraction.ReplaceAllString(s, ".678Z")
	s = bars.ReplaceAllString(s, "  BAR  ")
	s = ruler.ReplaceAllString(s, "  RULER")
	s = places.ReplaceAllString(s, " --PLACE")
	return duration.ReplaceAllStringFunc(s, func(d string) string {
		if strings.HasPrefix(d, "after") {
			return "after SOME TIME"
		}
		return "N ms"
	})
}

// buffer is written by a command and read by its test at the same time.
type buffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	other *buffer // standard error, if the test reads it
	seen  func(string)
	doing sync.WaitGroup // what seen started
}

// Write implements io.Writer. It calls seen with all that was written.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	n, err := b.b.Write(p)
	s := b.b.String()
	b.mu.Unlock()
	if b.seen != nil {
		b.seen(s)
	}
	return n, err
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// after makes a buffer that calls f once, beside the command, when it holds a text.
func after(text string, f func(all string)) *buffer {
	var once sync.Once
	b := &buffer{}
	b.seen = func(s string) {
		if strings.Contains(s, text) {
			once.Do(func() { b.doing.Go(func() { f(s) }) })
		}
	}
	return b
}
