package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/tool"
)

// previewBytes is how much of a large result the model gets.
const previewBytes = 2 << 10

// capResult replaces the text of a result that is too large by its beginning and
// gives the whole as a blob: one result must not fill the model's window.
func (e *Engine) capResult(res *tool.Result, name string) *store.Blob {
	size := 0
	for _, b := range res.Content {
		size += len(b.Text)
	}
	if size <= e.cfg.MaxResultBytes {
		return nil
	}
	var text strings.Builder
	var rest []message.Block
	for _, b := range res.Content {
		if b.Type == message.BlockText {
			text.WriteString(b.Text)
		} else {
			rest = append(rest, b)
		}
	}
	whole := text.String()
	sum := sha256.Sum256([]byte(whole))
	blob := &store.Blob{ID: hex.EncodeToString(sum[:]), MimeType: "text/plain; charset=utf-8", Name: name + ".txt", Created: e.now(), Data: []byte(whole)}
	cut := min(previewBytes, len(whole))
	for cut > 0 && !utf8.RuneStart(whole[cut]) {
		cut--
	}
	preview := fmt.Sprintf("<persisted-output>\nThe output is too large (%d bytes). The whole is stored as artifact %s. It begins:\n%s\n…\n</persisted-output>", len(whole), blob.ID, whole[:cut])
	res.Content = append([]message.Block{message.Text(preview)}, rest...)
	return blob
}

// artifact is the payload of artifact_created.
func artifact(b *store.Blob) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"artifact_id": b.ID, "name": b.Name, "mime_type": b.MimeType, "bytes": len(b.Data)})
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// withBlob is an outcome with a payload for the same commit.
type withBlob struct {
	run.Input
	blob *store.Blob
}
