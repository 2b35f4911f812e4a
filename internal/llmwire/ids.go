package llmwire

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxCallID is the longest id of a call that is taken everywhere but at OpenAI's Chat
// Completions, which takes 40.
const maxCallID = 64

// CallID is the id of a call as most providers take it: letters, digits, _ and -, at
// most 64. A longer one is cut and told apart by a hash.
func CallID(id string) string {
	ok := id != "" && len(id) <= maxCallID
	for i := 0; ok && i < len(id); i++ {
		ok = inToolName(id[i])
	}
	if ok {
		return id
	}
	if id == "" {
		return "call"
	}
	out := []byte(id)
	for i := range out {
		if !inToolName(out[i]) {
			out[i] = '_'
		}
	}
	if len(out) > maxCallID {
		sum := sha256.Sum256([]byte(id))
		out = append(append(out[:47], '_'), hex.EncodeToString(sum[:8])...)
	}
	return string(out)
}

// ShortHash is 16 hexadecimal digits that stand for a text.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
