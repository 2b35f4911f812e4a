package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// An image that providers refuse would stay in the session and make every later
// request fail: it is kept out wherever it comes from.
func TestBadImagesAreKeptOut(t *testing.T) {
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("fine") })
	bad := []message.Block{message.Text("look"), message.Image("not base64!", "image/png")}
	start := func(req StartRequest) error {
		_, err := h.engine.Start(t.Context(), req)
		return err
	}
	ses, err := h.engine.CreateSession(t.Context(), SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r := h.run("hello")
	_, appended := h.engine.Append(t.Context(), Ref{"default", ses.ID}, message.Message{Role: message.RoleUser, Content: bad})
	for name, tt := range map[string]struct {
		err   error
		field string
	}{
		"input":     {start(StartRequest{Input: bad}), "input[1].data"},
		"type":      {start(StartRequest{Input: []message.Block{message.Image("AAAA", "image/tiff")}}), "input[0].mimeType"},
		"history":   {start(StartRequest{Input: bad[:1], History: []message.Message{message.Message{Role: message.RoleUser, Content: bad}}}), "history[0].content[1].data"},
		"steer":     {h.engine.Steer(t.Context(), Ref{"default", r.ID}, bad), "input[1].data"},
		"follow up": {h.engine.FollowUp(t.Context(), Ref{"default", r.ID}, bad), "input[1].data"},
		"append":    {appended, "content[1].data"},
	} {
		var f *fault.Error
		if !errors.As(tt.err, &f) || f.Kind != fault.Invalid || f.Field != tt.field {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
}

func TestBadImagesOfToolsBecomeTexts(t *testing.T) {
	var got []message.Block
	camera := toolFunc{tool.Spec{Name: "camera", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Content: []message.Block{message.Image("AAAA", "image/png"), message.Image("***", "image/png"), message.Image("AAAA", "image/tiff")}}, nil
	}}
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("c1", "camera", `{}`))
		}
		got = req.Messages[len(req.Messages)-1].Content
		return say("seen")
	}, camera)
	h.wait(h.run("look"))
	if len(got) != 3 || got[0].Type != message.BlockImage || got[1].Type != message.BlockText || !strings.Contains(got[1].Text, "base64") ||
		got[2].Type != message.BlockText || !strings.Contains(got[2].Text, "image/png") {
		t.Errorf("the model got %+v", got)
	}
}
