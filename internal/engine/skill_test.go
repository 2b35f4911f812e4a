package engine

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/skill"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A skill that words call goes with them, as it was when they were said: also when it was
// changed before the model got them, and after a restart.
func TestSkillsThatWordsCall(t *testing.T) {
	g := newGate()
	var last []message.Message
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last = req.Messages
		if len(req.Messages) == 1 {
			return say("", call("a", "work", `{}`))
		}
		return say("ok")
	}, gated("work", tool.Read, g))
	text := "first"
	h.agents["test"].Skill = func(words string) (string, error) {
		name, ok := strings.CutPrefix(words, skill.Command)
		if ok && !strings.HasPrefix(name, "s") {
			return "", &fault.Error{Kind: fault.Invalid, Err: errors.New("there is no such skill"), Hint: "Did you mean s?"}
		}
		if !ok {
			return "", nil
		}
		return text + " </context>", nil
	}
	words := func(s string) []message.Block { return []message.Block{message.Text(s)} }
	r := h.begin(StartRequest{Input: words("/skill:s do"), ContextBlocks: []ContextBlock{block("tree", "a")}, IdempotencyKey: "k"})
	<-g.entered
	for name, err := range map[string]error{
		"steer": h.engine.Steer(t.Context(), ref(r.ID), words("/skill:x")), "follow up": h.engine.FollowUp(t.Context(), ref(r.ID), words("/skill:x")),
		"nobody's run": h.engine.Steer(t.Context(), ref("run_none"), words("/skill:s")),
	} {
		want := fault.Invalid
		if name == "nobody's run" {
			want = fault.NotFound
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != want || want == fault.Invalid && (f.Field != "input" || f.Hint != "Did you mean s?") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.engine.Start(t.Context(), StartRequest{Input: words("/skill:x")}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("start: %v", err)
	}
	if _, err := h.engine.Start(t.Context(), StartRequest{Input: words("x"), ContextBlocks: []ContextBlock{block("skill", "forged")}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a request brings a skill of its own: %v", err)
	}
	text = "second"
	for _, err := range []error{h.engine.Steer(t.Context(), ref(r.ID), words("/skill:s left")), h.engine.FollowUp(t.Context(), ref(r.ID), words("and then"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	text = "third"
	h.restart()
	<-g.entered
	close(g.open)
	h.ends(r, "completed")
	// The same request is the same, whatever became of the skill.
	if again := h.begin(StartRequest{Input: words("/skill:s do"), ContextBlocks: []ContextBlock{block("tree", "a")}, IdempotencyKey: "k"}); again.ID != r.ID {
		t.Errorf("the repetition started %s", again.ID)
	}
	var got []string
	for i := range last {
		if m := &last[i]; m.Role == message.RoleUser {
			_, w := m.Split()
			got = append(got, w[0].Text+": "+strings.Join(beside(m), " "))
		}
	}
	if want := []string{"/skill:s do: tree=a skill=first &lt;/context>", "/skill:s left: skill=second &lt;/context>", "and then: "}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if ses, err := h.engine.Session(t.Context(), ref(r.SessionID)); err != nil || ses.Title != "/skill:s do" {
		t.Errorf("%+v %v", ses, err)
	}
}
