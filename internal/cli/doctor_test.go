package cli

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"agentd"
	"agentd/client"
)

// damage changes the store behind agentd's back.
func (b *bench) damage(statements ...string) {
	b.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.data, "agentd.db"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		r, err := db.ExecContext(b.t.Context(), s)
		if err != nil {
			b.t.Fatalf("%s: %v", s, err)
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			b.t.Fatalf("%s changed nothing (%v)", s, err)
		}
	}
}

func (b *bench) findings(args ...string) agentd.CheckReport {
	b.t.Helper()
	r := b.here(append([]string{"doctor", "--json"}, args...)...)
	return lines[agentd.CheckReport](r)[0]
}

// A store that only agentd wrote has nothing wrong: runs that ended in every way,
// subagents, and ones that wait.
func TestDoctorFindsNothing(t *testing.T) {
	b := newBench(t)
	b.here("doctor").exits(1).complains("there is no store")
	b.agent("talk", "x").exits(0)
	b.agent("fail", "x").exits(1)
	b.agent("twice", "x").exits(3)
	b.agent("boss", "x").exits(3)
	b.agent("boss", "x", "--mode", "autonomous").exits(0)
	b.here("interrupts", "answer", b.waiting()[0].ID, "--answer", "one").exits(3)
	b.here("doctor").exits(0).says("nothing is wrong", "7 runs")
	b.here("doctor", "--repair").exits(0).says("nothing is wrong")
	if r := b.findings(); len(r.Findings) != 0 || r.Runs != 7 || r.Events < 20 || r.Entries < 10 {
		t.Errorf("%+v", r)
	}
	rt := b.open()
	b.here("doctor").exits(0).says("nothing is wrong") // beside who writes
	b.here("doctor", "--repair").exits(1).complains("Stop the server first")
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	b.run("doctor", "--data", ":memory:").exits(2).complains("can not be checked")
}

// A store whose files others can read is told of, and shut.
func TestDoctorLooksAtPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // its permissions are not these
	}
	b := newBench(t)
	b.agent("talk", "x").exits(0)
	file := filepath.Join(b.data, "agentd.db")
	for name, mode := range map[string]os.FileMode{file: 0o644, b.data: 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	b.here("doctor").exits(1).says("permissions", "mode 0644", "--repair would make it its owner's alone")
	b.here("doctor", "--repair").exits(0).says("repaired: make it its owner's alone")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	// Nobody can enter a folder that is its owner's alone.
	for name, mode := range map[string]os.FileMode{file: 0o644, b.data: 0o700} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	b.here("doctor").exits(0).says("nothing is wrong")
}

func TestDoctor(t *testing.T) {
	for name, tt := range map[string]struct {
		profile string
		damage  []string
		check   string
		what    string
		repairs bool
	}{
		"leaf past a gap": {"talk", []string{"DELETE FROM entries WHERE key = (SELECT max(key) - 1 FROM entries)"}, "leaf", "breaks at entry", true},
		"leaf is gone":    {"talk", []string{"UPDATE sessions SET leaf = 'nowhere'"}, "leaf", "nowhere", true},
		"circle":          {"talk", []string{"UPDATE entries SET parent = id WHERE key = (SELECT max(key) FROM entries)"}, "leaf", "breaks", true},
		"body":            {"talk", []string{"UPDATE entries SET body = x'0201' WHERE key = (SELECT min(key) FROM entries)"}, "entries", "can not be read", false},
		"body is no JSON": {"talk", []string{"UPDATE entries SET body = CAST('{' AS BLOB) WHERE key = (SELECT min(key) FROM entries)"}, "entries", "not JSON", false},
		"an ended run holds": {"talk", []string{"INSERT INTO pots VALUES (1, 1, 'tenant_day', '2026-01-02', 5, 50, 0, 0, 7, 70, 0, 0, 0, 0, 1)",
			"INSERT INTO holds SELECT key, 1, 'call', 4, 40, 3, 30 FROM runs LIMIT 1"}, "budgets", "still holds a part of its budgets", true},
		"what is held":          {"talk", []string{"INSERT INTO pots VALUES (1, 1, 'tenant_day', '2026-01-02', 5, 50, 0, 0, 7, 70, 0, 0, 0, 0, 1)"}, "budgets", "not what its runs hold", true},
		"orphans":               {"talk", []string{"INSERT INTO inputs (run, id, kind, created) VALUES (4711, 'x', 'steer', 1)"}, "orphans", "queued messages without their run", true},
		"a run without session": {"ask", []string{"DELETE FROM sessions"}, "orphans", "runs without their session", true},
		"input of an ended run": {"talk", []string{"INSERT INTO inputs (run, id, kind, created) VALUES ((SELECT max(key) FROM runs), 'x', 'steer', 1)"}, "inputs", "queued messages", true},
		"open interrupt":        {"ask", []string{"UPDATE runs SET status = 'failed', ended = 1"}, "interrupts", "would reach nobody", true},
		"nobody is asked":       {"ask", []string{"DELETE FROM interrupts"}, "interrupts", "wait for ever", false},
		"state":                 {"ask", []string{"UPDATE runs SET state = x'00027b7d'"}, "state", "damaged", false},
		"state of another run":  {"ask", []string{"UPDATE runs SET id = 'run_other'"}, "state", "is that of run", false},
		"status":                {"ask", []string{"UPDATE runs SET status = 'running'"}, "state", "by its control state", false},
		"number":                {"talk", []string{"UPDATE runs SET seq = 3"}, "events", "above the run's last number", false},
		"no end":                {"talk", []string{"DELETE FROM journal WHERE key = (SELECT max(key) FROM journal)"}, "events", "waits for an end", false},
		"journal":               {"talk", []string{"UPDATE journal SET body = x'0205' WHERE key = (SELECT max(key) FROM journal)"}, "journal", "can not be read", false},
		"usage":                 {"talk", []string{"UPDATE usage SET input = 1"}, "usage", "the sums have", false},
		"output":                {"talk", []string{"UPDATE runs SET output_entry = 'x'"}, "runs", "the entry of its answer", false},
		"no time":               {"talk", []string{"UPDATE runs SET ended = 0"}, "runs", "no time of its end", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.agent(tt.profile, "x")
			b.damage(tt.damage...)
			find := func(r agentd.CheckReport) *agentd.Finding {
				for i := range r.Findings {
					if f := &r.Findings[i]; f.Check == tt.check && strings.Contains(f.What, tt.what) {
						return f
					}
				}
				return nil
			}
			before := b.findings()
			f := find(before)
			if f == nil || f.Repaired || (f.Repair != "") != tt.repairs || f.Repair == "" && f.Advice == "" && f.Severity == "error" {
				t.Fatalf("%+v", before.Findings)
			}
			b.here("doctor").exits(1).says(tt.what, tt.check)
			if !tt.repairs {
				return
			}
			if f := find(b.findings("--repair")); f == nil || !f.Repaired {
				t.Errorf("not repaired: %+v", f)
			}
			if f := find(b.findings()); f != nil {
				t.Errorf("after the repair: %+v", f)
			}
		})
	}
}

// What was repaired works: the conversation can be read and goes on.
func TestDoctorRepairsAConversation(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "x").exits(0)
	ses := lines[client.Session](b.here("sessions", "ls", "--json").exits(0))[0].ID
	b.damage("UPDATE entries SET parent = 'gone' WHERE key = (SELECT max(key) FROM entries)")
	// What is left of it can be read all the same.
	b.here("sessions", "show", ses).exits(0).says("models are not shown what was said before: entry gone is gone")
	b.here("doctor", "--repair").exits(0).says("repaired: go back to entry", "nothing is left to do")
	b.here("sessions", "show", ses).exits(0)
	b.agent("talk", "more", "--session", ses).exits(0)
	b.here("doctor").exits(0)
}

// A file that SQLite can not read is told so, and nothing else.
func TestDoctorOfADamagedFile(t *testing.T) {
	b := newBench(t)
	for range 5 {
		b.agent("talk", strings.Repeat("long ", 2000)).exits(0)
	}
	rt, err := agentd.Open(context.Background(), agentd.Config{Configs: b.configs, Data: b.data}) // closing it empties the log
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.data, "agentd.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for page := 0; page+4096 <= len(file); page += 4096 {
		bad := slices.Clone(file)
		copy(bad[page+2000:], strings.Repeat("x", 1500))
		copy(bad[page+3:], "\xff\xff")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := b.here("doctor"); strings.Contains(r.out, "error (file)") {
			r.exits(1).says("Restore the file from a backup")
			told++
		} else if r.code != 0 && !strings.Contains(r.out+r.err, "damaged") && !strings.Contains(r.out+r.err, "can not be read") && !strings.Contains(r.err, "another program") {
			t.Errorf("page %d: %d %s%s", page/4096, r.code, r.out, r.err)
		}
	}
	if told == 0 {
		t.Error("no damage was found")
	}
}
