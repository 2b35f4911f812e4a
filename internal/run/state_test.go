package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentd/message"
)

func TestEntryIDsSortAndAreUnique(t *testing.T) {
	s := State{EntryBase: "x"}
	last := ""
	for n := range 40_000 {
		id := s.nextEntry()
		if id <= last || len(id) != 5 {
			t.Fatalf("entry %d is %q, after %q", n, id, last)
		}
		last = id
	}
	for n, want := range map[int]string{0: "x0000", 9: "x0009", 10: "x000a", 31: "x000z", 32: "x0010", 1<<20 - 1: "xzzzz"} {
		s.Entries = n
		if got := s.nextEntry(); got != want || s.Entries != n+1 {
			t.Errorf("entry %d is %q, want %q", n, got, want)
		}
	}
}

func TestKeyIsOfRunStepAndCall(t *testing.T) {
	s := State{RunID: "r7", Step: 12}
	if got := s.Key("call_1"); got != "r7/12/call_1" {
		t.Errorf("key %q", got)
	}
}

func TestStatusEnded(t *testing.T) {
	for status, want := range map[Status]bool{Queued: false, Running: false, Paused: false, Completed: true, Failed: true, Cancelled: true} {
		if status.Ended() != want {
			t.Errorf("%s: ended is %t", status, !want)
		}
	}
}

// TestPlanCallIDs: ids are the model's to make and ours to rely on.
func TestPlanCallIDs(t *testing.T) {
	for _, test := range []struct{ given, want string }{
		{"a b c", "a b c"},
		{"a a", "a a_1"},
		{"a a a", "a a_1 a_2"},
		{"a a a_1", "a a_1 a_1_2"},
		{"a_1 a a", "a_1 a a_2"},
		{"- -", "_0 _1"}, // "-" stands for an empty id
		{"_1 -", "_1 _2"},
		{"x - x -", "x _1 x_2 _3"},
	} {
		reply := &message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text("hi")}}
		for _, id := range strings.Fields(test.given) {
			reply.Content = append(reply.Content, message.Call(strings.Replace(id, "-", "", 1), "t", nil))
		}
		given := slices.Clone(reply.Content)
		original := reply.Content
		m := &machine{Transition: Transition{State: State{EntryBase: "e"}}}
		var ids, inReply []string
		for _, c := range m.planCalls(reply) {
			ids = append(ids, c.ID)
		}
		for _, b := range reply.ToolCalls() {
			inReply = append(inReply, b.ID)
		}
		if got := strings.Join(ids, " "); got != test.want || strings.Join(inReply, " ") != test.want {
			t.Errorf("%s becomes %s, in the reply %v; want %s", test.given, got, inReply, test.want)
		}
		if !reflect.DeepEqual(original, given) {
			t.Errorf("%s: the caller's message changed", test.given)
		}
	}
}

// TestRetryDelays: base × 2^(n-1), capped; a server's hint wins; one that is over
// the cap means the model is given up.
func TestRetryDelays(t *testing.T) {
	for _, test := range []struct {
		name    string
		retry   Retry
		attempt int
		hint    int64
		models  int
		want    string
	}{
		{"first", Retry{3, 2000, 60_000}, 1, 0, 1, "retry 2 in 2000"},
		{"second doubles", Retry{3, 2000, 60_000}, 2, 0, 1, "retry 3 in 4000"},
		{"third doubles again", Retry{3, 2000, 60_000}, 3, 0, 1, "retry 4 in 8000"},
		{"attempts used up", Retry{3, 2000, 60_000}, 4, 0, 1, "failed"},
		{"own delay is capped", Retry{9, 2000, 5000}, 3, 0, 1, "retry 4 in 5000"},
		{"no cap", Retry{9, 2000, 0}, 8, 0, 1, "retry 9 in 256000"},
		{"shift does not overflow", Retry{99, 1000, 0}, 70, 0, 1, "retry 71 in 1048576000"},
		{"hint wins over a longer delay", Retry{3, 2000, 60_000}, 3, 100, 1, "retry 4 in 100"},
		{"hint wins over a shorter delay", Retry{3, 2000, 60_000}, 1, 9000, 1, "retry 2 in 9000"},
		{"hint at the cap", Retry{3, 2000, 9000}, 1, 9000, 1, "retry 2 in 9000"},
		{"hint over the cap", Retry{3, 2000, 9000}, 1, 9001, 1, "failed"},
		{"hint over the cap, with a fallback", Retry{3, 2000, 9000}, 1, 9001, 2, "model 1"},
		{"hint without a cap", Retry{3, 2000, 0}, 1, 3_600_000, 1, "retry 2 in 3600000"},
		{"no retries", Retry{}, 1, 0, 1, "failed"},
		{"no retries, with a fallback", Retry{}, 1, 0, 2, "model 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := State{Version: 1, Status: Running, Phase: PhaseModel, Step: 1, EntryBase: "e",
				Settings: Settings{Models: test.models, Retry: test.retry}, Model: &ModelCall{Entry: "e0", Attempt: test.attempt}}
			tr, err := Step(s, ModelFailed{At: At{50}, Class: FailRetryable, RetryAfterMS: test.hint})
			if err != nil {
				t.Fatal(err)
			}
			got := string(tr.State.Status)
			if m := tr.State.Model; m != nil && m.Index > 0 {
				got = fmt.Sprint("model ", m.Index)
			} else if m != nil {
				got = fmt.Sprintf("retry %d in %d", m.Attempt, m.RetryAt-50)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestBranchesShareNothing: two inputs on one state give two states, and the
// second does not write into the first. Queues of every length are tried,
// because only some of them leave room that could be shared.
func TestBranchesShareNothing(t *testing.T) {
	for _, queue := range []func(string) Input{
		func(id string) Input { return Steered{ID: id} },
		func(id string) Input { return FollowedUp{ID: id} },
	} {
		s := play(t, "start prompt=u1").s
		for n := range 20 {
			one, err1 := Step(s, queue("one"))
			was := form(&one.State)
			two, err2 := Step(s, queue("two"))
			if err1 != nil || err2 != nil || form(&one.State) != was || form(&two.State) == was {
				t.Fatalf("%d queued: %v, %v\nfirst was %s\nand is   %s", n, err1, err2, was, form(&one.State))
			}
			next, err := Step(s, queue(fmt.Sprint("q", n)))
			if err != nil {
				t.Fatal(err)
			}
			s = next.State
		}
	}
}

func TestInterrupts(t *testing.T) {
	s := State{Calls: []Call{
		{Interrupt: "i3", Phase: CallAsked}, {Interrupt: "i1", Phase: CallDone}, {Phase: CallRunning}, {Interrupt: "i2", Phase: CallAsked}}}
	if got := s.Interrupts(); !slices.Equal(got, []string{"i3", "i2"}) {
		t.Errorf("open are %v", got)
	}
	if got := new(State).Interrupts(); got != nil {
		t.Errorf("a new state has %v", got)
	}
}

// TestIllegalErrorsTell: the text has the input, where it met the run, why it is
// wrong, and the last transitions.
func TestIllegalErrorsTell(t *testing.T) {
	p := play(t, "start prompt=u1\nreply a:read")
	_, err := Step(p.s, ToolDone{CallID: "zzz"})
	want := `run: ToolDone is illegal in status running, phase tools: there is no call "zzz" (last transitions: Started:queued>model ModelDone:model>tools)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for range 20 {
		p.line("timer tea")
	}
	if got := strings.Join(p.s.Trail, " "); got != "Started:queued>model ModelDone:model>tools TimerFired:tools*20" {
		t.Errorf("the trail is %s", got)
	}
	for n := range 20 {
		p.run(fmt.Sprintf("steer s%d\ntimer tea", n))
	}
	if n := len(p.s.Trail); n != trailLength {
		t.Errorf("the trail has %d transitions", n)
	}
}

type alien struct{ At }

func (alien) Kind() string { return "Alien" }

func TestUnknownInputs(t *testing.T) {
	for _, in := range []Input{nil, alien{}, &Started{EntryBase: "e"}} {
		tr, err := Step(New("r", "s"), in)
		var illegal *IllegalError
		if !errors.As(err, &illegal) || !reflect.DeepEqual(tr, Transition{}) {
			t.Errorf("%T: %+v, %v", in, tr, err)
		}
	}
}

// TestDecodeRefuses: a state that no machine wrote is an error, not a panic in
// some later step.
func TestDecodeRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:          "can not be read",
		`[]`:        "can not be read",
		`{"v":"1"}`: "can not be read",
		`{}`:        "version 0",
		`{"v":2,"status":"queued","phase":"queued"}`: "use the newer agentd",
		`{"v":1}`: `status ""`,
		`{"v":1,"status":"bored","phase":"queued"}`:                                                         `status "bored"`,
		`{"v":1,"status":"running","phase":"lunch"}`:                                                        `phase "lunch"`,
		`{"v":1,"status":"running","phase":"queued"}`:                                                       "status running",
		`{"v":1,"status":"completed","phase":"tools"}`:                                                      "status completed",
		`{"v":1,"status":"running","phase":"ended"}`:                                                        "status running",
		`{"v":1,"status":"queued","phase":"model"}`:                                                         "status queued",
		`{"v":1,"status":"running","phase":"model"}`:                                                        "no model call",
		`{"v":1,"status":"running","phase":"retry"}`:                                                        "no model call",
		`{"v":1,"status":"running","phase":"tools","model":{"attempt":1}}`:                                  "no calls",
		`{"v":1,"status":"running","phase":"tools","calls":[{"id":"a"}]}`:                                   "no model call",
		`{"v":1,"status":"running","phase":"tools","model":{"attempt":1},"calls":[{"id":"a","phase":"x"}]}`: `call "a"`,
		`{"v":1,"status":"paused_checkpoint","phase":"model","model":{"attempt":1}}`:                        "status paused_checkpoint",
	} {
		_, err := Decode([]byte(in))
		var illegal *IllegalError
		if !errors.As(err, &illegal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", in, err, want)
		}
	}
}

// FuzzDecode: whatever Decode accepts, no input makes Step panic, and it stays
// readable.
func FuzzDecode(f *testing.F) {
	for _, script := range []string{"", "start prompt=u1", "start\nreply a:read b:pay\nallow a\nask b \"?\"",
		"start retry=1,5,9\nfail retryable", "start\nfail overflow", "start\nreply a:pay\nallow a\ncrash", "start\nreply \"bye\""} {
		f.Add(play(f, script).s.Encode())
	}
	f.Add([]byte(`{"v":1,"status":"running","phase":"retry"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		result := message.ToolResult("a", "read", false)
		call, interrupt := "a", "r1.i1"
		if len(s.Calls) > 0 {
			call, interrupt = s.Calls[0].ID, s.Calls[0].Interrupt
		}
		for _, in := range []Input{Started{EntryBase: "e"}, ModelDone{Message: &message.Message{Role: message.RoleAssistant}},
			ModelFailed{Class: FailRetryable}, ModelFailed{Class: FailOverflow}, Verdict{CallID: call, Decision: Allow},
			ToolDone{CallID: call, Message: &result}, Answered{Interrupt: interrupt, Decision: "approve"}, Steered{ID: "q"}, FollowedUp{ID: "q"},
			TimerFired{At{1 << 60}, TimerRetry}, TimerFired{At{1 << 60}, TimerDeadline}, Full{}, Compacted{}, Spent{}, CancelRequested{}, Aborted{}, Resumed{}, InDoubt{}} {
			tr, err := Step(s, in)
			if err != nil {
				continue
			}
			if _, err := Decode(tr.State.Encode()); err != nil {
				t.Errorf("%s leads to a state that is refused: %v", in.Kind(), err)
			}
		}
	})
}

// TestStateIsSmall: a run with three calls under way takes less than 1 KB, and
// less than 1.5 KB where the provider's ids and the tools' names are long and
// each call waits for a person. Entry and run ids have the engine's lengths.
func TestStateIsSmall(t *testing.T) {
	t.Run("short ids, running", func(t *testing.T) {
		small(t, "call_", "read_file", Allow, 1024)
	})
	t.Run("long ids, asked", func(t *testing.T) {
		small(t, "call_Ab3dEf6hIj9kLm2nOp5qRs8", "filesystem_read_file", Ask, 1536)
	})
}

func small(t *testing.T, prefix, name string, decision Decision, limit int) {
	t.Helper()
	s := New("01jd3q5y8k7wz9x4v2m6n0p1ab", "01jd3q5y8k7wz9x4v2m6n0p1cd")
	now := int64(1_795_000_000_000)
	step := func(in Input) {
		t.Helper()
		tr, err := Step(s, in)
		if err != nil {
			t.Fatal(err)
		}
		s = tr.State
	}
	step(Started{At: At{now}, EntryBase: "01jd3q5y8k7wz", Prompt: []string{"01jd3q5y8k7wz9x4v2m6n0p1ef"},
		Settings: Settings{Models: 2, MaxSteps: 50, MaxToolCalls: 100, MaxRunMS: 600_000, Retry: Retry{3, 2000, 60_000}}})
	usage := &message.Usage{Input: 12_345, Output: 678, CacheRead: 9000, TotalTokens: 22_023,
		Cost: message.Cost{Input: 37_035_000, Output: 10_170_000, CacheRead: 2_700_000, Total: 49_905_000}}
	ids := []string{prefix + "1", prefix + "2", prefix + "3"}
	reply := &message.Message{Role: message.RoleAssistant, Usage: usage}
	for _, id := range ids {
		reply.Content = append(reply.Content, message.Call(id, name, json.RawMessage(`{"path":"/a/long/path"}`)))
	}
	step(ModelDone{At: At{now}, Message: reply})
	for _, id := range ids {
		step(Verdict{At: At{now}, CallID: id, Decision: decision, Effect: "once", Prompt: "may it?"})
	}
	if len(s.Calls) != 3 || (s.Status == Paused) != (decision == Ask) {
		t.Fatalf("the state is %s", s.Encode())
	}
	if n := len(s.Encode()); n >= limit {
		t.Errorf("%d bytes: %s", n, s.Encode())
	}
}
