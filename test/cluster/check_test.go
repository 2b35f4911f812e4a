//go:build unix

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/message"
)

// uncertain is how the result of a call begins whose outcome nobody knows.
const uncertain = "agentd was restarted while this call ran"

// transcript is a session in lines. Ids are left out, since they differ.
func transcript(entries []*client.Entry) ([]string, error) {
	var lines []string
	var calls []message.Block // of the last reply, that have no result yet
	order, tip := map[string]int{}, ""
	for _, e := range entries {
		if e.Parent != tip || e.Message == nil {
			return nil, fmt.Errorf("entry %+v follows %q", e, tip)
		}
		tip = e.ID
		m := e.Message
		if m.Role != message.RoleToolResult && len(calls) > 0 {
			return nil, fmt.Errorf("entry %s: call %s has no result", e.ID, calls[0].ID)
		}
		var line strings.Builder
		switch m.Role {
		case message.RoleUser:
			word, _, _ := strings.Cut(m.Text(), " ")
			line.WriteString("user " + word)
		case message.RoleAssistant:
			calls = m.ToolCalls()
			fmt.Fprintf(&line, "%s %s", m.Role, m.StopReason)
			for _, b := range m.Content {
				if b.Type == message.BlockToolCall {
					order[b.ID] = len(order)
					fmt.Fprintf(&line, " [%d %s %s]", order[b.ID], b.Name, b.Arguments)
				} else {
					fmt.Fprintf(&line, " %s %q", b.Type, b.Text)
				}
			}
		case message.RoleToolResult:
			if len(calls) == 0 || calls[0].ID != m.ToolCallID {
				return nil, fmt.Errorf("entry %s is the result of %s, which is not its turn", e.ID, m.ToolCallID)
			}
			fmt.Fprintf(&line, "result %d %s ", order[m.ToolCallID], calls[0].Name)
			calls = calls[1:]
			if text := m.Text(); strings.HasPrefix(text, uncertain) {
				line.WriteString("?")
			} else {
				fmt.Fprintf(&line, "%v %q", m.IsError, text)
			}
		}
		lines = append(lines, line.String())
	}
	if len(calls) > 0 {
		return nil, fmt.Errorf("call %s has no result", calls[0].ID)
	}
	return lines, nil
}

// differs says where a transcript is not that of an undisturbed run, or "". What a
// `once` call came to may be unknown; doubts is how often.
func differs(got, want []string) (doubts int, where string) {
	for i, line := range got {
		switch {
		case i >= len(want):
			return doubts, "it goes on with\n" + line
		case line == want[i]:
		case strings.HasSuffix(line, " ?") && strings.HasPrefix(want[i], strings.TrimSuffix(line, "?")) && (strings.Contains(line, " fire ") || strings.Contains(line, " paint ")):
			doubts++
		default:
			return doubts, fmt.Sprintf("line %d is\n%s\nwant\n%s", i, line, want[i])
		}
	}
	if len(got) < len(want) {
		return doubts, "it ends before\n" + want[len(got)]
	}
	return doubts, ""
}

// undisturbed runs each kind once while nothing happens, and keeps what its runs say:
// by kind, and those of child runs by their first word.
func (w *world) undisturbed(ctx context.Context) {
	w.t.Helper()
	w.want = map[string][]string{}
	var working sync.WaitGroup
	for i, kind := range kinds {
		p := &person{w: w, name: fmt.Sprintf("calm%d", i), rng: rand.New(rand.NewPCG(w.seed, 1<<33+uint64(i)))}
		working.Go(func() {
			if err := p.work(ctx, kind); err != nil {
				w.t.Error(err)
			}
		})
	}
	if working.Wait(); w.t.Failed() {
		w.t.FailNow()
	}
	for _, r := range w.book.records {
		entries, err := w.book.apis[0].client.Entries(ctx, r.session)
		if err != nil {
			w.t.Fatal(err)
		}
		lines, err := transcript(entries)
		if err != nil {
			w.t.Fatal(err)
		}
		w.want[r.want(lines)] = lines
	}
	w.t.Logf("undisturbed: %d runs, %d transcripts", w.book.len(), len(w.want))
}

func (r *record) want(lines []string) string {
	if r.parent != nil {
		return "child " + lines[0]
	}
	return r.kind
}

// check looks at everything when nobody disturbs any more.
func (w *world) check(ctx context.Context) {
	w.t.Helper()
	ledger := readLedger(w.t, w.ledger)
	events := map[string][]event.Event{}
	var mu sync.Mutex
	doubts, certain, hops, children := 0, 0, 0, 0
	todo := make(chan *record)
	var workers sync.WaitGroup
	for i := range 4 {
		rng := rand.New(rand.NewPCG(w.seed, 1<<34+uint64(i)))
		workers.Go(func() {
			for r := range todo {
				evs, d, err := w.checkRun(ctx, rng, r, ledger)
				if err != nil {
					w.t.Errorf("run %s (%s): %v", r.id, r.kind, err)
				}
				mu.Lock()
				events[r.id] = evs
				doubts += d
				hops += r.hops
				if d == 0 {
					certain++
				}
				if r.parent != nil {
					children++
				}
				mu.Unlock()
			}
		})
	}
	for _, r := range w.book.records {
		todo <- r
	}
	close(todo)
	workers.Wait()
	once, again, said := 0, 0, 0
	for key, lines := range ledger {
		parts := strings.Split(key, "/")
		if len(parts) < 3 {
			w.t.Errorf("the key %q is not run/step/call", key)
			continue
		}
		began := 0
		for _, l := range lines {
			if !l.End {
				began++
			}
		}
		switch tool := lines[0].Tool; {
		case tool == "look" || tool == "put":
			again += began - 1
		case began == 1:
			once++
		case began <= 1+len(w.book.retried[parts[0]+" "+parts[len(parts)-1]]):
			once++
			said += began - 1
		default:
			w.t.Errorf("%s of key %s happened %d times, and nobody asked for that", tool, key, began)
		}
	}
	w.t.Logf("%d runs, %d of them children, %d with a transcript without doubt; %d connections of readers; %d once calls, %d of them repeated on a person's word, %d results in doubt; %d calls repeated because that does no harm",
		len(w.book.records), children, certain, hops, once, said, doubts, again)
	w.checkFaults(events, ledger)
}

// checkRun holds what is stored of a run against what its reader saw, against the
// ledger, and against an undisturbed run.
func (w *world) checkRun(ctx context.Context, rng *rand.Rand, r *record, ledger map[string][]written) (events []event.Event, doubts int, err error) {
	api := w.book.apis[rng.IntN(len(w.book.apis))].client
	got, err := api.Run(ctx, r.id)
	if err != nil {
		return nil, 0, err
	}
	if events, err = api.Events(ctx, r.id, 0); err != nil {
		return nil, 0, err
	}
	if got.Status != client.Completed || "run_"+got.Status != string(r.reader.Ended) {
		return events, 0, fmt.Errorf("it is %s (%+v), and its reader was told %s", got.Status, got.Error, r.reader.Ended)
	}
	if r.reader.Text != got.Output {
		return events, 0, fmt.Errorf("its reader has %q, and it says %q", r.reader.Text, got.Output)
	}
	if err := r.reader.Compare(events, false); err != nil {
		return events, 0, err
	}
	ends := 0
	for _, ev := range events {
		if ev.Type.Terminal() {
			ends++
		}
		// A call that has a result does not begin again.
		d, ok := ev.Data.(*event.Tool)
		if !ok || ev.Type != event.ToolCompleted {
			continue
		}
		for _, l := range ledger[fmt.Sprintf("%s/%d/%s", r.id, ev.Step, d.ToolCallID)] {
			if !l.End && l.At > ev.Time {
				return events, 0, fmt.Errorf("call %s had its result at %d and began again at %d in process %d", d.ToolCallID, ev.Time, l.At, l.Node)
			}
		}
	}
	if ends != 1 {
		return events, 0, fmt.Errorf("it has %d terminal events", ends)
	}
	entries, err := api.Entries(ctx, got.SessionID)
	if err != nil {
		return events, 0, err
	}
	lines, err := transcript(entries)
	if err != nil {
		return events, 0, err
	}
	doubts, where := differs(lines, w.want[r.want(lines)])
	if where != "" {
		return events, doubts, fmt.Errorf("the transcript differs from an undisturbed one: %s", where)
	}
	return events, doubts, nil
}

// end stops every node as people do and has the doctor look at what they left.
func (w *world) end() {
	w.t.Helper()
	for _, n := range w.nodes {
		n.http.CloseIdleConnections()
		n.p.Stop(time.Minute)
		n.heed()
	}
	out, err := exec.Command(w.bin, "doctor", "--json", "--store", w.place, "--configs", w.dir+"/configs").CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"findings":[]`) {
		w.t.Errorf("the doctor: %v\n%s", err, out)
	}
}
