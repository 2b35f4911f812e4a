package engine

import (
	"strings"

	"agentd/message"
)

// titleLength is how much of the first message names a session.
const titleLength = 80

func title(blocks []message.Block) string {
	for _, b := range blocks {
		if b.Type == message.BlockText && b.Text != "" {
			r := []rune(b.Text)
			for i, c := range r {
				if c == '\n' || i == titleLength {
					return string(r[:i])
				}
			}
			return strings.ToValidUTF8(b.Text, "\uFFFD")
		}
	}
	return ""
}
