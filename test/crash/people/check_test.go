//go:build unix

package people

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agentd/client"
	"agentd/event"
	_ "agentd/internal/store/sqlite" // brings the database's driver
	"agentd/message"
)

// story is what a session tells of one run.
type story struct {
	run   string
	lines []string
	// texts are the blocks of each reply by its entry.
	texts map[string][]message.Block
	// done are calls with a result that says that they happened, as "run/call".
	done []string
}

// uncertain is how the result of a call begins whose outcome nobody knows.
const uncertain = "agentd was restarted while this call ran"

// transcript reads a session: the story of each run in the order of the session.
func transcript(ctx context.Context, s *server, session string) ([]*story, error) {
	entries, err := s.client.Entries(ctx, session)
	if err != nil {
		return nil, err
	}
	var runs []*story
	var calls []message.Block // of the last reply, that have no result yet
	order, tip := map[string]int{}, ""
	for _, e := range entries {
		if e.Parent != tip || e.Message == nil {
			return nil, fmt.Errorf("entry %+v follows %q in session %s", e, tip, session)
		}
		tip = e.ID
		if len(runs) == 0 || runs[len(runs)-1].run != e.RunID {
			runs = append(runs, &story{run: e.RunID, texts: map[string][]message.Block{}})
			order = map[string]int{}
		}
		r, m := runs[len(runs)-1], e.Message
		if m.Role != message.RoleToolResult && len(calls) > 0 {
			return nil, fmt.Errorf("entry %s: call %s of run %s has no result", e.ID, calls[0].ID, e.RunID)
		}
		var line strings.Builder
		switch m.Role {
		case message.RoleUser:
			line.WriteString("user " + m.Text())
		case message.RoleAssistant:
			if calls = m.ToolCalls(); m.StopReason == message.StopAborted {
				calls = nil // broken off: they were never made
			}
			r.texts[e.ID] = m.Content
			fmt.Fprintf(&line, "%s %s", m.Role, m.StopReason)
			for _, b := range m.Content {
				switch b.Type {
				case message.BlockToolCall:
					order[b.ID] = len(order)
					fmt.Fprintf(&line, " [%d %s %s]", order[b.ID], b.Name, b.Arguments)
				default:
					fmt.Fprintf(&line, " %s %q", b.Type, b.Text)
				}
			}
		case message.RoleToolResult:
			if len(calls) == 0 || calls[0].ID != m.ToolCallID {
				return nil, fmt.Errorf("entry %s is the result of %s, which is not its turn in run %s", e.ID, m.ToolCallID, e.RunID)
			}
			fmt.Fprintf(&line, "result %d %s ", order[m.ToolCallID], calls[0].Name)
			calls = calls[1:]
			if text := m.Text(); strings.HasPrefix(text, uncertain) {
				line.WriteString("?")
			} else {
				fmt.Fprintf(&line, "%v %q", m.IsError, text)
				if !m.IsError {
					r.done = append(r.done, e.RunID+"/"+m.ToolCallID)
				}
			}
		default:
			return nil, fmt.Errorf("entry %s has role %q", e.ID, m.Role)
		}
		r.lines = append(r.lines, line.String())
	}
	if len(calls) > 0 {
		return nil, fmt.Errorf("call %s of session %s has no result", calls[0].ID, session)
	}
	return runs, nil
}

// differs says where a run's transcript is not that of an undisturbed one. What
// it says of calls that may have happened can differ, and what people added
// comes at the end.
func (r *record) differs(got *story, want []string) string {
	var extra []string
	lines := got.lines
	for n, line := range lines {
		switch {
		case n == 0 && line == "user "+r.input || r.parent != nil && n == 0 && line == "user batch for somebody else":
		case n == 0:
			return fmt.Sprintf("it begins with %q", line)
		case n >= len(want):
			extra = append(extra, line)
		case line == want[n]:
		case strings.HasSuffix(line, " ?") && strings.HasPrefix(want[n], strings.TrimSuffix(line, "?")) &&
			(strings.Contains(line, toolFire) || strings.Contains(line, toolPaint)):
		default:
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", n, line, want[n])
		}
	}
	if len(lines) < len(want) {
		return fmt.Sprintf("it ends after\n%s", lines[len(lines)-1])
	}
	heard := map[string]bool{}
	for i := 0; i+1 < len(extra); i += 2 {
		text, ok := strings.CutPrefix(extra[i], "user ")
		if _, known := r.said[text]; !ok || !known || heard[text] || extra[i+1] != `assistant stop text "Noted as well."` {
			return fmt.Sprintf("it goes on with\n%s", strings.Join(extra[i:], "\n"))
		}
		heard[text] = true
	}
	if len(extra)%2 != 0 {
		return fmt.Sprintf("it ends with\n%s", extra[len(extra)-1])
	}
	for text, receipt := range r.said {
		if receipt && !heard[text] {
			return fmt.Sprintf("%q was accepted and is not there", text)
		}
	}
	return ""
}

// check looks at everything once more when nobody disturbs.
func (w *world) check(ctx context.Context, b *book, want map[task][]string) {
	w.t.Helper()
	ledger, err := readLedger(w.ledger)
	if err != nil {
		w.t.Fatal(err)
	}
	s, _ := w.current()
	ran := w.checkLedger(b, ledger)
	first := w.views(ctx, s, b)
	stories := w.stories(ctx, s, b)
	w.each(b, func(r *record) {
		if err := w.checkRun(ctx, s, r, stories[r.id], want, ran); err != nil {
			w.t.Errorf("run %s (%s, %s, %s): %v", r.id, r.input, r.task.profile, r.task.mode, err)
		}
	})
	w.kill(s)
	s = w.start()
	for id, body := range w.views(ctx, s, b) {
		if body != first[id] {
			w.t.Errorf("after another kill run %s reads\n%s\nand before\n%s", id, body, first[id])
		}
	}
	s.Stop(patience)
	w.checkDatabase()
}

// each calls f for every record, a few at a time.
func (w *world) each(b *book, f func(*record)) {
	todo := make(chan *record)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for r := range todo {
				f(r)
			}
		})
	}
	for _, r := range b.records {
		todo <- r
	}
	close(todo)
	workers.Wait()
}

// checkLedger holds what ran against what people asked for, and gives the calls
// that ran as "run/call".
func (w *world) checkLedger(b *book, ledger map[string][]written) map[string]bool {
	retries := map[string]int{}
	for _, r := range b.records {
		for key, n := range r.retries {
			retries[key] += n
		}
	}
	ran := map[string]bool{}
	once, again := 0, 0
	for key, lines := range ledger {
		parts := strings.SplitN(key, "/", 3)
		if len(parts) != 3 {
			w.t.Errorf("the key %q is not run/step/call", key)
			continue
		}
		ran[parts[0]+"/"+parts[2]] = true
		for _, l := range lines {
			if l.Tool != lines[0].Tool || string(l.Args) != string(lines[0].Args) {
				w.t.Errorf("key %s: %+v and %+v", key, lines[0], l)
			}
		}
		switch tool := lines[0].Tool; {
		case tool != toolFire && tool != toolPaint:
			again += len(lines) - 1
		case len(lines) > 1+retries[key]:
			w.t.Errorf("%s of key %s ran %d times, and people asked %d times for a repetition", tool, key, len(lines), retries[key])
		default:
			once++
		}
	}
	w.t.Logf("the ledger has %d keys, %d of once tools; %d calls were repeated because that does no harm, %d because a person said so",
		len(ledger), once, again, len(retries))
	return ran
}

// views gives each run as the server shows it, byte by byte.
func (w *world) views(ctx context.Context, s *server, b *book) map[string]string {
	var mu sync.Mutex
	views := map[string]string{}
	w.each(b, func(r *record) {
		body, err := get(ctx, s, "/runs/"+r.id)
		if err != nil {
			w.t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		views[r.id] = body
	})
	return views
}

func get(ctx context.Context, s *server, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, resp.Status, raw)
	}
	return string(raw), err
}

// stories reads every session and checks the order of its runs.
func (w *world) stories(ctx context.Context, s *server, b *book) map[string]*story {
	w.t.Helper()
	stories := map[string]*story{}
	read := func(session string) (order []string) {
		runs, err := transcript(ctx, s, session)
		if err != nil {
			w.t.Error(err)
		}
		for _, r := range runs {
			if stories[r.run] != nil {
				w.t.Errorf("the entries of run %s are not together in session %s", r.run, session)
			}
			stories[r.run] = r
			order = append(order, r.run)
		}
		return order
	}
	for session, runs := range b.sessions {
		order := read(session)
		// A run that was cancelled before its turn wrote nothing.
		runs = slices.DeleteFunc(slices.Clone(runs), func(r *record) bool { return stories[r.id] == nil && r.tried })
		if !slices.EqualFunc(runs, order, func(r *record, id string) bool { return r.id == id }) {
			w.t.Errorf("session %s has the runs %v, not in the order they were accepted", session, order)
		}
	}
	for _, r := range b.records {
		if r.parent != nil {
			read(r.session)
		}
	}
	return stories
}

// checkRun holds what the server tells of a run against what people saw.
func (w *world) checkRun(ctx context.Context, s *server, r *record, got *story, want map[task][]string, ran map[string]bool) error {
	run, err := s.client.Run(ctx, r.id)
	if err != nil {
		return err
	}
	tried := r.tried || r.parent != nil && r.parent.tried
	switch {
	case run.SessionID != r.session:
		return fmt.Errorf("it is in session %s, not %s", run.SessionID, r.session)
	case r.cancelled && run.Status != client.Cancelled:
		return fmt.Errorf("its cancel was accepted and it is %s", run.Status)
	case run.Status == client.Completed, tried && run.Status == client.Cancelled:
	default:
		return fmt.Errorf("it is %s: %+v", run.Status, run.Error)
	}
	events, err := s.client.Events(ctx, r.id, 0)
	if err != nil {
		return err
	}
	if err := r.checkEvents(run, events); err != nil {
		return err
	}
	if got == nil {
		if run.Status != client.Cancelled {
			return fmt.Errorf("it has no transcript")
		}
		return nil
	}
	for step, entry := range r.reader.entries {
		if err := r.checkText(step, entry, got.texts[entry]); err != nil {
			return err
		}
	}
	for _, call := range got.done {
		if id := strings.TrimPrefix(call, r.id+"/"); !ran[call] && isLedger(got, id) {
			return fmt.Errorf("call %s has a result and never ran", id)
		}
	}
	if run.Status == client.Completed {
		t := r.task
		if r.parent != nil {
			t = task{"batch", "worker", r.task.mode} // the same model on the same wire
		}
		if d := r.differs(got, want[t]); d != "" {
			return fmt.Errorf("the transcript differs from an undisturbed one: %s", d)
		}
	}
	return w.checkAnswers(ctx, s, r)
}

// isLedger is whether a call is one of the ledger's.
func isLedger(got *story, id string) bool {
	for _, blocks := range got.texts {
		for _, b := range blocks {
			if b.ID == id {
				return slices.Contains([]string{toolLook, toolPut, toolFire, toolPaint}, b.Name)
			}
		}
	}
	return false
}

// live are events that a crash may take back: they were told ahead of a commit.
var live = []event.Type{event.TextDelta, event.ThinkingDelta, event.ToolInputStarted, event.ToolStdout, event.ToolStderr, event.ToolProgress}

// checkEvents holds the stored events against those that the reader got.
func (r *record) checkEvents(run *client.Run, events []event.Event) error {
	last, ends := int64(0), 0
	at := 0
	for _, ev := range events {
		if ev.Seq <= last {
			return fmt.Errorf("stored event %d comes after %d", ev.Seq, last)
		}
		last = ev.Seq
		if ev.Type.Terminal() {
			ends++
		}
		if ev.Type.Delta() {
			continue // joined and cut differently; their text is compared
		}
		for at < len(r.reader.events) && r.reader.events[at].seq < ev.Seq {
			if got := r.reader.events[at]; !slices.Contains(live, got.typ) {
				return fmt.Errorf("the reader got event %d %s, which is not stored", got.seq, got.typ)
			}
			at++
		}
		data, err := canonical(ev)
		if err != nil {
			return err
		}
		if at == len(r.reader.events) || r.reader.events[at].seq != ev.Seq {
			return fmt.Errorf("the reader never got event %d %s", ev.Seq, ev.Type)
		}
		if got := r.reader.events[at]; got.data != data {
			return fmt.Errorf("the reader got\n%s\nand stored is\n%s", got.data, data)
		}
		at++
	}
	if ends != 1 || !events[len(events)-1].Type.Terminal() || last > run.LastSeq {
		return fmt.Errorf("%d terminal events, the last event is %d %s, last_seq %d", ends, last, events[len(events)-1].Type, run.LastSeq)
	}
	if "run_"+run.Status != string(r.reader.ended) {
		return fmt.Errorf("it is %s and the reader was told %s", run.Status, r.reader.ended)
	}
	return nil
}

// checkText compares what streamed with what is stored.
func (r *record) checkText(step int, entry string, blocks []message.Block) error {
	for i, b := range blocks {
		if b.Type != message.BlockText && b.Type != message.BlockThinking {
			continue
		}
		if got := r.reader.texts[block{step, i}]; got != b.Text {
			return fmt.Errorf("step %d, block %d: the reader has %q, entry %s has %q", step, i, got, entry, b.Text)
		}
	}
	return nil
}

// checkAnswers holds every answer with a receipt against what is stored.
func (w *world) checkAnswers(ctx context.Context, s *server, r *record) error {
	for id, decision := range r.decided {
		i, err := s.client.Interrupt(ctx, id)
		if err != nil {
			return err
		}
		if i.Status == "open" || i.Status == "answered" && i.Decision != decision {
			return fmt.Errorf("interrupt %s is %s (%s), the answer was %s", id, i.Status, i.Decision, decision)
		}
	}
	return nil
}

// checkDatabase asks the doctor whether every invariant of the store holds.
func (w *world) checkDatabase() {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.data, "*.db"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("databases: %v, %v", files, err)
	}
	if out, err := exec.Command(w.bin, "doctor", "--data", w.data, "--configs", w.configs, "--json").CombinedOutput(); err != nil || !bytes.Contains(out, []byte(`"findings":[]`)) {
		w.t.Errorf("the doctor: %v\n%s", err, out)
	}
	if info, err := os.Stat(files[0]); err == nil {
		w.t.Logf("the database has %d KiB", info.Size()>>10)
	}
}
