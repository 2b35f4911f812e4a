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

// persisted begins what stands in the place of a large result.
const persisted = "<persisted-output>\n"

// capResult replaces the text of a result that is too large by its beginning and
// gives the whole as a blob: one result must not fill the model's window. readOn is
// whether the model can read on.
func (e *Engine) capResult(res *tool.Result, name string, readOn bool) *store.Blob {
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
	whole, kept := strings.ToValidUTF8(text.String(), "\uFFFD"), "The whole is stored"
	if limit := e.cfg.Artifacts.Bytes; limit > 0 && int64(len(whole)) > limit {
		kept = fmt.Sprintf("Its first %d bytes are stored", limit)
		size, whole = len(whole), head(whole, int(limit))
	} else {
		size = len(whole)
	}
	sum := sha256.Sum256([]byte(whole))
	blob := &store.Blob{ID: hex.EncodeToString(sum[:]), MimeType: "text/plain; charset=utf-8", Name: name + ".txt", Created: e.now(), Data: []byte(whole)}
	how := ""
	if readOn {
		how = fmt.Sprintf(" Read on with %s (artifact_id %q, offset or grep).", ReadArtifact, blob.ID)
	}
	preview := fmt.Sprintf("%sThe output is too large (%d bytes). %s as artifact %s.%s It begins:\n%s\n…\n</persisted-output>",
		persisted, size, kept, blob.ID, how, head(whole, previewBytes))
	res.Content = append([]message.Block{message.Text(preview)}, rest...)
	return blob
}

// head is the beginning of a text, of whole characters.
func head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
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
	// call is the tool call that made it.
	call string
}
