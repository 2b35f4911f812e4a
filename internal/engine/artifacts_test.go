package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// large is a tool whose result is as long as it is asked to be.
func large() tool.Tool {
	return toolFunc{tool.Spec{Name: "large", Effect: tool.Read}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		var a struct {
			Of    string
			Bytes int
		}
		if err := json.Unmarshal(c.Args, &a); err != nil {
			return tool.Result{}, err
		}
		return tool.TextResult(strings.Repeat(a.Of+"\n", a.Bytes/(len(a.Of)+1))), nil
	}}
}

// artifacts gives what is known of a session's artifacts, in short.
func (h *harness) artifacts(sessionID string) (kept, expired []*ArtifactView) {
	h.t.Helper()
	views, err := h.engine.Artifacts(context.Background(), ref(sessionID))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, v := range views {
		_, _, data, err := h.engine.Artifact(context.Background(), ref(v.ID))
		switch {
		case v.ExpiredAt == "" && err != nil && strings.Contains(err.Error(), " expired on "):
			expired = append(expired, v) // since it was listed
		case v.ExpiredAt == "" && (err != nil || int64(len(data)) != v.Bytes):
			h.t.Errorf("%+v: %d bytes, %v", v, len(data), err)
		case v.ExpiredAt == "":
			kept = append(kept, v)
		case fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), " expired on "):
			h.t.Errorf("%+v: %v", v, err)
		default:
			expired = append(expired, v)
		}
	}
	return kept, expired
}

// asks is a model that makes the call that its last message names, and says then
// what it got.
func asks(_ context.Context, step int, req *model.Request) (*message.Message, error) {
	last := &req.Messages[len(req.Messages)-1]
	if last.Role == message.RoleUser {
		name, args, _ := strings.Cut(last.Text(), " ")
		return say("", call(fmt.Sprintf("c%d", len(req.Messages)), name, args))
	}
	return say(last.Text())
}

var idRE = regexp.MustCompile(`artifact ([0-9a-f]{64})`)

// Results that were too large go after a week; what is known of them stays, and who
// asks is told.
func TestOldArtifactsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, asks, large())
		h.limits = ArtifactLimits{Keep: 7 * 24 * time.Hour}
		h.restart()
		r := h.ends(h.begin(StartRequest{Input: []message.Block{message.Text(`large {"of":"x","bytes":40000}`)}}), "completed")
		id := idRE.FindStringSubmatch(r.Output)[1]
		shared := h.ends(h.begin(StartRequest{Input: []message.Block{message.Text(`large {"of":"x","bytes":40000}`)}}), "completed")
		pass(6 * 24 * time.Hour)
		synctest.Wait()
		kept, _ := h.artifacts(r.SessionID)
		if len(kept) != 1 || kept[0].ID != id || kept[0].Name != "large.txt" || kept[0].RunID != r.ID || kept[0].ToolCallID != "c1" || kept[0].Bytes != 40000 || kept[0].ExpiresAt == "" {
			t.Fatalf("%+v", kept)
		}
		// The other session makes the same again: it keeps it longer, and the content is there for both.
		h.ends(h.begin(StartRequest{SessionID: shared.SessionID, Input: []message.Block{message.Text(`large {"of":"x","bytes":40000}`)}}), "completed")
		pass(24*time.Hour + 2*artifactsEvery)
		synctest.Wait()
		views, err := h.engine.Artifacts(t.Context(), ref(r.SessionID))
		if err != nil || views[0].ExpiredAt == "" || !strings.Contains(views[0].Reason, "7 days") {
			t.Errorf("%+v, %v", views[0], err)
		}
		if _, _, data, err := h.engine.Artifact(t.Context(), ref(id)); err != nil || len(data) != 40000 {
			t.Errorf("the other session has lost it: %v", err)
		}
		// A model of the session that gave it up is told so, also while another has it.
		out := h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text(`read_artifact {"artifact_id":"` + id + `"}`)}}), "completed").Output
		if !strings.Contains(out, "expired on "+views[0].ExpiredAt) || !strings.Contains(out, "Call the tool again") {
			t.Errorf("%s", out)
		}
		h.restart()
		pass(7*24*time.Hour + 2*artifactsEvery)
		synctest.Wait()
		for _, s := range []string{r.SessionID, shared.SessionID} {
			if kept, expired := h.artifacts(s); len(kept) != 0 || len(expired) != 1 {
				t.Errorf("%d kept, %d expired", len(kept), len(expired))
			}
		}
		h.goesOn2(r.SessionID)
	})
}

func (h *harness) goesOn2(session string) {
	h.t.Helper()
	h.ends(h.begin(StartRequest{SessionID: session, Input: []message.Block{message.Text(`large {"of":"y","bytes":10}`)}}), "completed")
}

// A session keeps so many, and so much.
func TestASessionDoesNotGatherArtifacts(t *testing.T) {
	for _, tt := range []struct {
		limits ArtifactLimits
		reason string
		kept   int
	}{
		{ArtifactLimits{Files: 3}, "has 3 newer ones (artifacts.max_files)", 3},
		{ArtifactLimits{Bytes: 100_000}, "has 100000 bytes of newer ones with it (artifacts.max_bytes)", 2},
	} {
		h := newHarness(t, asks, large())
		h.limits = tt.limits
		h.restart()
		ses := ""
		for i := range 5 {
			ses = h.ends(h.begin(StartRequest{SessionID: ses, Input: []message.Block{message.Text(fmt.Sprintf(`large {"of":"%d","bytes":40000}`, i))}}), "completed").SessionID
		}
		h.until("only the newest are kept", func() bool { kept, _ := h.artifacts(ses); return len(kept) == tt.kept })
		_, expired := h.artifacts(ses)
		if len(expired) != 5-tt.kept || !strings.Contains(expired[0].Reason, tt.reason) {
			t.Errorf("%+v", expired[0])
		}
	}
	// One that alone is too large is stored in part.
	h := newHarness(t, asks, large())
	h.limits = ArtifactLimits{Bytes: 50_000}
	h.restart()
	r := h.ends(h.begin(StartRequest{Input: []message.Block{message.Text(`large {"of":"x","bytes":90000}`)}}), "completed")
	if kept, _ := h.artifacts(r.SessionID); len(kept) != 1 || kept[0].Bytes != 50_000 || !strings.Contains(r.Output, "(90000 bytes). Its first 50000 bytes are stored") {
		t.Errorf("%+v: %.200s", kept, r.Output)
	}
}

// Whatever the process is doing when it dies, an artifact has its content or says that
// it has none, and the next sweep goes on.
func TestKillWhileArtifactsAreSwept(t *testing.T) {
	for at := 1; at <= 4; at++ {
		for _, after := range []bool{false, true} {
			h := newHarness(t, asks, large())
			ses := ""
			for i := range 4 {
				ses = h.ends(h.begin(StartRequest{SessionID: ses, Input: []message.Block{message.Text(fmt.Sprintf(`large {"of":"%d","bytes":40000}`, i))}}), "completed").SessionID
			}
			h.engine.Close()
			whole := h.store
			cs := &crashStore{Store: whole, at: at, after: after, down: make(chan struct{})}
			h.store, h.limits = cs, ArtifactLimits{Files: 1}
			h.start() // sweeps at once
			if at < 4 {
				<-cs.down
			}
			h.engine.Close()
			h.store = whole
			h.limits = ArtifactLimits{}
			h.start()
			kept, expired := h.artifacts(ses)
			if len(kept)+len(expired) != 4 {
				t.Errorf("at %d: %d kept, %d expired", at, len(kept), len(expired))
			}
			if at < 4 && len(expired) != at-1 && !(after && len(expired) == at) {
				t.Errorf("at %d after=%v: %d expired", at, after, len(expired))
			}
			h.limits = ArtifactLimits{Files: 1}
			h.restart()
			h.until("one is kept", func() bool { kept, _ := h.artifacts(ses); return len(kept) == 1 })
		}
	}
}

func TestModelsReadOnInLargeResults(t *testing.T) {
	var tools []string
	results := []string{}
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		tools = tools[:0]
		for _, s := range req.Tools {
			tools = append(tools, s.Name)
		}
		return asks(ctx, step, req)
	}, large())
	r := h.ends(h.begin(StartRequest{Input: []message.Block{message.Text(`large {"of":"a line of é text","bytes":90000}`)}}), "completed")
	if fmt.Sprint(tools) != "[large read_artifact]" || !strings.Contains(r.Output, "Read on with read_artifact") || len(r.Output) > 2500 {
		t.Fatalf("%v: %.300s", tools, r.Output)
	}
	id := idRE.FindStringSubmatch(r.Output)[1]
	read := func(args string) string {
		t.Helper()
		out := h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text(`read_artifact {"artifact_id":"` + id + `"` + args + `}`)}}), "completed").Output
		results = append(results, out)
		if len(out) > 30<<10 {
			t.Errorf("%s gives %d bytes", args, len(out))
		}
		return out
	}
	// All of it can be read, part by part.
	whole, offset := "", "0"
	for range 20 {
		out := read(`,"offset":` + offset)
		i := strings.LastIndex(out, "\n[")
		whole += out[:i]
		m := regexp.MustCompile(`Go on with offset (\d+)`).FindStringSubmatch(out[i:])
		if m == nil {
			break
		}
		offset = m[1]
	}
	if _, _, data, _ := h.engine.Artifact(t.Context(), ref(id)); whole != string(data) || len(whole) != 90000 {
		t.Errorf("read %d bytes", len(whole))
	}
	for args, want := range map[string]string{
		`,"offset":11,"limit":1`:            "é\n[Bytes 10 to 12",
		`,"offset":99999999`:                "offset 99999999 is behind its end",
		`,"grep":"NOT THERE"`:               "No line from byte 0 on matches",
		`,"grep":"("`:                       "not a regular expression",
		`,"grep":"line of .","limit":5`:     "There are more: go on with offset",
		`,"grep":"LINE","offset":89000`:     "No line from byte 89000",
		`,"grep":"(?i)LINE","offset":89980`: "89982: a line",
	} {
		if out := read(args); !strings.Contains(out, want) {
			t.Errorf("%s: %.300s … %s", args, out, out[max(0, len(out)-200):])
		}
	}
	// The guard: what was read is in the conversation and is no artifact.
	if kept, _ := h.artifacts(r.SessionID); len(kept) != 1 {
		t.Errorf("%d artifacts", len(kept))
	}
	// Without tools there is nothing to read on in.
	h.agents["test"].NoReadArtifact = true
	r = h.ends(h.begin(StartRequest{Input: []message.Block{message.Text(`large {"of":"z","bytes":90000}`)}}), "completed")
	if fmt.Sprint(tools) != "[large]" || strings.Contains(r.Output, "read_artifact") {
		t.Errorf("%v: %.300s", tools, r.Output)
	}
}

// Artifacts are read in the tree of the run that asks, and nowhere else.
func TestArtifactsAreReadInTheirTreeAlone(t *testing.T) {
	const ask = `large {"of":"secret","bytes":40000}`
	var id string
	script := func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		first := req.Messages[0].Text()
		if first == "parent" {
			switch step {
			case 0:
				return say("", call("k", CreateSubagent, `{"subagent_type":"test","prompt":"`+strings.ReplaceAll(ask, `"`, `\"`)+`"}`))
			case 1:
				id = idRE.FindStringSubmatch(req.Messages[len(req.Messages)-1].Text())[1]
				return say("", call("r", ReadArtifact, `{"artifact_id":"`+id+`","limit":6}`))
			}
			return say(req.Messages[len(req.Messages)-1].Text())
		}
		return asks(ctx, step, req)
	}
	h := newHarness(t, script, large())
	h.agents["test"].Subagents = []string{"test"}
	h.restart()
	r := h.ends(h.run("parent"), "completed")
	if !strings.HasPrefix(r.Output, "secret\n[Bytes 0 to 6") {
		t.Fatalf("the parent reads %.200s", r.Output)
	}
	out := h.ends(h.begin(StartRequest{Input: []message.Block{message.Text(`read_artifact {"artifact_id":"` + id + `"}`)}}), "completed").Output
	none := h.ends(h.begin(StartRequest{Input: []message.Block{message.Text(`read_artifact {"artifact_id":"` + strings.Repeat("0", 64) + `"}`)}}), "completed").Output
	if strings.ReplaceAll(out, id, "ID") != strings.ReplaceAll(none, strings.Repeat("0", 64), "ID") || !strings.Contains(out, "There is no artifact") {
		t.Errorf("another session reads %.200s, and of nobody's %.200s", out, none)
	}
	other, err := h.engine.Start(t.Context(), StartRequest{Tenant: "other", Input: []message.Block{message.Text(`read_artifact {"artifact_id":"` + id + `"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.engine.Wait(t.Context(), Ref{"other", other.ID})
	if err != nil || !strings.Contains(got.Output, "There is no artifact") {
		t.Errorf("another tenant reads %.200s, %v", got.Output, err)
	}
	if _, err := h.engine.Artifacts(t.Context(), Ref{"other", r.SessionID}); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	if _, err := h.store.Artifacts(t.Context(), store.DefaultTenant, "no"); err == nil {
		t.Error("artifacts of no session")
	}
}

// A profile that masks outputs masks parts of them too.
func TestMaskedOutputsStayMaskedWhenTheyAreLarge(t *testing.T) {
	var r Redact = func(_ string, data json.RawMessage) json.RawMessage { return data }
	if got := r.text("x", persisted+"secret"); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

// What is read has a bound, is text, and is a part of the artifact.
func FuzzReadArtifact(f *testing.F) {
	f.Add("a line\nanother é\n", 3, 4, "é|l")
	f.Add("\xff\xfe", 1, 1, ".")
	f.Add(strings.Repeat("x", 5000), 0, 0, "x+")
	f.Fuzz(func(t *testing.T, text string, offset, limit int, grep string) {
		const room = 1000
		text = strings.ToValidUTF8(text, "?")
		res := part(text, offset, limit, room)
		out := contentText(res.Content)
		if !utf8.ValidString(out) || len(out) > room+200 {
			t.Fatalf("%d bytes: %q", len(out), out)
		}
		if i := strings.LastIndex(out, "\n["); !res.IsError && !strings.Contains(text, out[:i]) {
			t.Fatalf("%q is not in %q", out[:i], text)
		}
		re, err := regexp.Compile(grep)
		if err != nil {
			return
		}
		out = contentText(matches(t.Context(), text, re, offset, room).Content)
		if !utf8.ValidString(out) || len(out) > 2*room {
			t.Fatalf("%d bytes: %q", len(out), out)
		}
	})
}

// Whenever the process dies while something is left out, the run and its session go on.
func TestKillWhileSomethingIsQuarantined(t *testing.T) {
	script := func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		if images(req) > 0 {
			return nil, refusal("Could not process image")
		}
		return say("fine")
	}
	for at := 1; at <= 6; at++ {
		for _, after := range []bool{false, true} {
			h := newHarness(t, script)
			h.engine.Close()
			whole := h.store
			cs := &crashStore{Store: whole, at: at, after: after, down: make(chan struct{})}
			h.store = cs
			h.start()
			r, err := h.engine.Start(t.Context(), StartRequest{Input: []message.Block{message.Text("look"), picture()}})
			if err != nil {
				continue // it was never acknowledged
			}
			done := make(chan struct{})
			go func() { // it ends, or the store is down before
				defer close(done)
				_, _ = h.engine.Wait(t.Context(), ref(r.ID))
			}()
			select {
			case <-cs.down:
			case <-done:
			}
			h.engine.Close()
			<-done
			h.store = whole
			h.start()
			h.ends(r, "completed")
			h.goesOn(r.SessionID)
			views, err := h.engine.Entries(t.Context(), ref(r.SessionID), "", 0)
			if err != nil || views[0].LeftOut == "" {
				t.Errorf("at %d after=%v: %+v, %v", at, after, views[0], err)
			}
		}
	}
}
