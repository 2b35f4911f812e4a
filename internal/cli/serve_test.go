package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentd"
	"agentd/client"
	"agentd/event"
)

// serving gives the address of a server on the bench's data folder.
func (b *bench) serving(check func(*http.Request)) (string, *agentd.Runtime) {
	b.t.Helper()
	rt := b.open()
	h, err := rt.Handler()
	if err != nil {
		b.t.Fatal(err)
	}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if check != nil {
			check(r)
		}
		h.ServeHTTP(w, r)
	}))
	b.t.Cleanup(ts.Close)
	return ts.URL, rt
}

func TestOnAServer(t *testing.T) {
	b := newBench(t)
	b.agent("ask", "Paint it").exits(3)
	b.agent("ask", "Paint it again").exits(3)
	first, second := b.waiting()[0], b.waiting()[1]
	url, rt := b.serving(func(r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer the-key" {
			t.Errorf("Authorization: %q", got)
		}
	})
	t.Setenv("AGENTD_API_KEY", "the-key")
	there := func(args ...string) *result { t.Helper(); return b.run(append(args, "--server", url)...) }
	// What is shown is the same as in the folder, except for the way there.
	for _, args := range []string{"runs ls", "runs show " + first.RunID, "runs events " + first.RunID, "sessions ls",
		"sessions show " + first.SessionID, "interrupts ls", "interrupts show " + first.ID, "runs ls --json", "runs show --json " + first.RunID,
		"sessions ls --json", "sessions show --json " + first.SessionID, "interrupts ls --json", "runs ls --status paused_checkpoint -n 1"} {
		remote, local := there(strings.Fields(args)...).exits(0), b.here(strings.Fields(args)...).exits(0)
		if r, l := normal(t, remote.out), normal(t, local.out); r != l {
			t.Errorf("agentd %s prints on the server\n%s\nand in the folder\n%s", args, r, l)
		}
	}
	there("interrupts", "answer", first.ID, "--answer", "red").exits(0).says("is answered (answer); run " + first.RunID + " goes on")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r, err := rt.Wait(ctx, first.RunID); err != nil || r.Output != "Then it is red." {
		t.Errorf("%+v, %v", r, err)
	}
	there("interrupts", "answer", first.ID, "--answer", "blue").exits(1).complains("no longer open")
	there("interrupts", "answer", second.ID, "--answer", "blue", "--follow").exits(0).says("Then it is blue.", "completed after 2 steps")
	followed := there("runs", "events", first.RunID, "--follow", "--json").exits(0)
	if types := followed.types(); types[len(types)-1] != event.RunCompleted {
		t.Errorf("%v", types)
	}
	there("runs", "show", "run_x").exits(1).complains("there is no run run_x")
	there("runs", "cancel", first.RunID).exits(1).complains("has ended: completed")
	there("sessions", "rm", first.SessionID).exits(0)
	there("sessions", "show", first.SessionID).exits(1).complains("there is no session")
	t.Setenv("AGENTD_SERVER", url)
	b.run("runs", "ls").exits(0).says(second.RunID)
	b.here("runs", "ls").exits(0).says(second.RunID) // a flag comes before the environment
	if r := there("runs", "ls", "--json"); strings.Contains(r.out+r.err, "the-key") {
		t.Error("the key is shown")
	}
}

func TestCancelOnAServer(t *testing.T) {
	b := newBench(t)
	url, rt := b.serving(nil)
	r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: "stuck", Input: agentd.Text("Go")})
	if err != nil {
		t.Fatal(err)
	}
	// Following is let go without hurting the run.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.runIn(ctx, after("text_delta", func(string) { cancel() }), "runs", "events", r.ID, "--follow", "--server", url).exits(130)
	if got := lines[client.Run](b.json("runs", "show", r.ID, "--server", url)); got[0].Status != client.Running {
		t.Errorf("%+v", got)
	}
	b.run("runs", "cancel", r.ID, "--server", url).exits(0).says("run " + r.ID + ": cancelled")
	b.run("sessions", "rm", r.SessionID, "--server", url).exits(0)
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(body)
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

func TestServe(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	status, other := 0, -1
	stderr := after("listens on", func(all string) {
		defer cancel()
		url := address.FindString(all)
		status, _ = get(t, url+"/healthz")
		// Only one process serves a folder.
		other = b.run("serve", "--addr", "127.0.0.1:0", "--data", b.data).complains("is in use by").code
	})
	b.runIn(ctx, &buffer{other: stderr}, "serve", "--addr", "127.0.0.1:0", "--data", b.data, "--configs", b.configs).exits(0)
	if status != 200 || other != 1 {
		t.Errorf("healthz %d, second server %d", status, other)
	}
}

func TestServeTakenAddress(t *testing.T) {
	b := newBench(t)
	url, _ := b.serving(nil)
	b.run("serve", "--data", ":memory:", "--addr", strings.TrimPrefix(url, "http://")).exits(1).complains("Choose another port")
}

func TestServeDemo(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shown string
	stderr := after("Ctrl-C stops it", func(all string) {
		defer cancel()
		if m := regexp.MustCompile(`curl -s (http://\S+/runs/run_\w+)`).FindStringSubmatch(all); m != nil {
			_, shown = get(t, m[1])
		}
	})
	b.runIn(ctx, &buffer{other: stderr}, "serve", "--addr", "127.0.0.1:0", "--data", ":memory:", "--demo", "Have a look").exits(0).
		says(`You asked: "Have a look"`, "completed after").complains("a script plays the model")
	if !strings.Contains(shown, `"status":"completed"`) {
		t.Errorf("the line to try next gives %q", shown)
	}
}

func TestSim(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.work, "greet.yaml")
	if err := os.WriteFile(path, []byte("turns:\n- text: Hello there.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := ""
	stderr := after("listens on", func(all string) {
		defer cancel()
		resp, err := http.Post(address.FindString(all)+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"x","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body) // a broken answer does not hold the text
		said = string(body)
	})
	b.runIn(ctx, &buffer{other: stderr}, "sim", "--addr", "127.0.0.1:0", "--script", path).exits(0)
	if !strings.Contains(said, "Hello there.") {
		t.Errorf("the simulator said %q", said)
	}
	if err := os.WriteFile(path, []byte("turnz: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run("sim", "--script", path).exits(2).complains("turnz")
}

// With keys, the lines to try next have one, and work as they are written.
func TestServeDemoWithKeys(t *testing.T) {
	b := newBench(t)
	made := b.run("keys", "create", "--data", b.data, "--json").exits(0)
	secret := regexp.MustCompile(`"key":"([^"]+)"`).FindStringSubmatch(made.out)
	if secret == nil {
		t.Fatalf("no key in %s", made.out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, status := "", 0
	stderr := after("Ctrl-C stops it", func(all string) {
		defer cancel()
		said = all
		m := regexp.MustCompile(`curl -s -H "Authorization: Bearer \$AGENTD_API_KEY" (http://\S+/runs/run_\w+)`).FindStringSubmatch(all)
		if m == nil {
			return
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", m[1], nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+secret[1])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		status = resp.StatusCode
	})
	b.runIn(ctx, &buffer{other: stderr}, "serve", "--addr", "127.0.0.1:0", "--data", b.data, "--demo", "Have a look").exits(0)
	if status != 200 || !strings.Contains(said, "export AGENTD_API_KEY=") || strings.Count(said, "$AGENTD_API_KEY") != 3 || strings.Contains(said, secret[1]) {
		t.Errorf("%d: %s", status, said)
	}
}
