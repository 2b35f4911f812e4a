package model

import "agentd/message"

const (
	// tokenBytes is how many bytes of text a token has, about.
	tokenBytes = 4
	// imageTokens is what an image of a usual size takes, about.
	imageTokens = 1000
)

// PromptTokens is about how many tokens a request has: for holding limits before
// anybody has counted, and for bills that nobody sends.
func PromptTokens(req *Request) int64 {
	bytes, images := int64(0), int64(0)
	for i := range req.System {
		bytes += int64(len(req.System[i].Text))
	}
	for i := range req.Messages {
		b, n := size(&req.Messages[i])
		bytes, images = bytes+b, images+n
	}
	for i := range req.Tools {
		t := &req.Tools[i]
		bytes += int64(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	return (bytes+tokenBytes-1)/tokenBytes + images*imageTokens
}

// ReplyTokens is about how many tokens a reply has, as far as it came.
func ReplyTokens(m *message.Message) int64 {
	bytes, _ := size(m)
	return (bytes + tokenBytes - 1) / tokenBytes
}

func size(m *message.Message) (bytes, images int64) {
	for i := range m.Content {
		b := &m.Content[i]
		bytes += int64(len(b.Text) + len(b.Name) + len(b.Arguments))
		if b.Type == message.BlockImage {
			images++
		}
	}
	return bytes, images
}

// Estimate is the usage of a call whose provider did not say what it used, because
// its stream was cut or cancelled. It has no cost yet.
func Estimate(req *Request, reply *message.Message) *message.Usage {
	u := &message.Usage{Input: PromptTokens(req), Output: ReplyTokens(reply), Estimated: true}
	u.TotalTokens = u.Input + u.Output
	return u
}
