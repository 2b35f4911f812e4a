//go:build unix

package proc

import "testing"

// What a process says is looked at line by line, however it comes.
func TestComplaints(t *testing.T) {
	const info, bad = "time=x level=INFO msg=\"a panic: was told\"\n", "time=x level=ERROR msg=\"no disk\"\n"
	const panics = "panic: oops\n\ngoroutine 1 [running]:\n"
	for log, want := range map[string]string{
		"": "", info: "", info + bad + info: bad, bad + bad: bad + bad, info + panics: panics, bad + info + panics: bad + panics,
		info + "WARNING: DATA RACE\nRead at\n": "WARNING: DATA RACE\nRead at\n", "fatal error: all goroutines are asleep\n": "fatal error: all goroutines are asleep\n",
	} {
		for _, size := range []int{1, 7, 1000} {
			p := &Process{ready: listens, said: make(chan struct{})}
			for rest := log; rest != ""; {
				n := min(size, len(rest))
				if m, err := p.Write([]byte(rest[:n])); m != n || err != nil {
					t.Fatal(m, err)
				}
				rest = rest[n:]
			}
			if got := p.Complaints(); got != want {
				t.Errorf("%q: %q, want %q", log, got, want)
			}
			if got := p.Text(); got != log {
				t.Errorf("%q was kept as %q", log, got)
			}
		}
	}
}

func TestTheyTellWhereTheyAre(t *testing.T) {
	for line, want := range map[string]string{
		"agentd (devel) listens on http://127.0.0.1:7070 (data: /d)\n":                                         "http://127.0.0.1:7070",
		"agentd sim listens on http://127.0.0.1:4010 (OpenAI: http://127.0.0.1:4010/v1, Anthropic: x)\n":       "http://127.0.0.1:4010",
		"agentd (devel) drives runs of postgres://h/d?a=b; http://127.0.0.1:7071/healthz says how it is\n":     "http://127.0.0.1:7071",
		"agentd (devel) makes calls of tool.gpu for runs of postgres://h/d; http://127.0.0.1:1/healthz says\n": "http://127.0.0.1:1",
		"agentd: the database at postgres://h listens to nobody, and http://127.0.0.1:1 is not its address\n":  "",
	} {
		p := &Process{ready: listens, said: make(chan struct{})}
		if _, err := p.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if got := p.URL(); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
