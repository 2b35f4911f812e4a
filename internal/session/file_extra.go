package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentd/internal/store"
)

// Lines of a file that are no entries have no parentId. Those of agentd have an id all the
// same: an agentd that does not know them takes them for entries that stand alone.
const (
	lineArtifact   = "artifact"
	lineQuarantine = "quarantine"
)

// Artifact is an artifact of a session as files have it.
type Artifact struct {
	// ID is the hex SHA-256 of Data.
	ID             string
	Name, MimeType string
	RunID, CallID  string
	Created        int64 // Unix milliseconds
	Size           int64 // of the content, in bytes
	Data           []byte
	// Without says why Data is not in the file, "" if it is.
	Without string
}

// Check says what is wrong with an artifact that has its content.
func (a *Artifact) Check() error {
	if sum := sha256.Sum256(a.Data); hex.EncodeToString(sum[:]) != a.ID {
		return errors.New("its content is damaged: it is not the one that the id is of")
	}
	return nil
}

type fileArtifact struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	Timestamp string  `json:"timestamp"`
	Run       string  `json:"run,omitempty"`
	Call      string  `json:"call,omitempty"`
	Name      string  `json:"name,omitempty"`
	MimeType  string  `json:"mimeType,omitempty"`
	Bytes     int64   `json:"bytes"`
	Text      *string `json:"text,omitempty"`
	Data      *string `json:"data,omitempty"` // base64
	Without   string  `json:"without,omitempty"`
}

type fileQuarantine struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Entry     string `json:"entry"`
	What      string `json:"what"`
	Timestamp string `json:"timestamp"`
	Run       string `json:"run,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// AppendArtifact appends an artifact as a line of a file: a content that is text as text,
// any other in base64, none where Without says why.
func AppendArtifact(b []byte, a *Artifact) ([]byte, error) {
	l := fileArtifact{Type: lineArtifact, ID: a.ID, Timestamp: writeTime(a.Created), Run: strings.TrimPrefix(a.RunID, Foreign), Call: a.CallID,
		Name: a.Name, MimeType: a.MimeType, Bytes: a.Size, Without: a.Without}
	switch {
	case a.Without != "":
	case utf8.Valid(a.Data):
		s := string(a.Data)
		l.Text = &s
	default:
		s := base64.StdEncoding.EncodeToString(a.Data)
		l.Data = &s
	}
	return appendLine(b, &l)
}

// AppendQuarantine appends what requests leave out of an entry as a line of a file.
func AppendQuarantine(b []byte, q *store.Quarantine) ([]byte, error) {
	return appendLine(b, &fileQuarantine{Type: lineQuarantine, ID: lineQuarantine + ":" + q.EntryID + ":" + q.What, Entry: q.EntryID, What: q.What,
		Timestamp: writeTime(q.Created), Run: strings.TrimPrefix(q.RunID, Foreign), Reason: q.Reason})
}

func appendLine(b []byte, v any) ([]byte, error) {
	w := bytes.NewBuffer(b)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return w.Bytes(), err
}

// extras reads the lines of a file that are no entries.
type extras struct {
	f         *File
	lines     *lineReader
	artifacts map[string]bool
	left      map[[2]string]bool
	bytes     int64 // of contents
}

// take takes a line that is no entry; false: it is one. What is wrong with such a line is a
// warning, because the conversation is whole without it.
func (x *extras) take(raw []byte, entries map[string]bool) (bool, error) {
	var l struct {
		Type   string          `json:"type"`
		Parent json.RawMessage `json:"parentId"`
	}
	if json.Unmarshal(raw, &l) != nil || l.Parent != nil || l.Type == "" || l.Type == "session" || l.Type == KindMessage || l.Type == KindCustom || l.Type == KindBranchSummary || silent(l.Type) {
		return false, nil
	}
	n := x.lines.n
	switch l.Type {
	case lineArtifact:
		if err := x.lines.entry(len(x.f.Artifacts)); err != nil {
			return true, err
		}
		if err := x.artifact(raw); err != nil {
			x.f.warn(n, "the artifact is left out: %v", err)
		}
	case lineQuarantine:
		if err := x.quarantine(raw, entries); err != nil {
			x.f.warn(n, "what requests leave out is not taken over: %v", err)
		}
	default:
		x.f.warn(n, "lines of type %q are not known to this agentd, and are left out", clip(l.Type))
	}
	return true, nil
}

func (x *extras) artifact(raw []byte) error {
	var l fileArtifact
	if err := json.Unmarshal(raw, &l); err != nil {
		return fmt.Errorf("it can not be read: %w", err)
	}
	if b, err := hex.DecodeString(l.ID); err != nil || len(b) != sha256.Size || l.ID != strings.ToLower(l.ID) {
		return fmt.Errorf("id: %q is no SHA-256", clip(l.ID))
	}
	for field, s := range map[string]string{"run": l.Run, "call": l.Call, "name": l.Name, "mimeType": l.MimeType} {
		if s != "" {
			if err := fileID(field, s); err != nil {
				return err
			}
		}
	}
	a := &Artifact{ID: l.ID, Name: l.Name, MimeType: l.MimeType, RunID: l.Run, CallID: l.Call, Size: l.Bytes, Without: l.Without}
	var err error
	if a.Created, err = readTime(l.Timestamp); err != nil {
		return fmt.Errorf("timestamp: %w", err)
	}
	switch {
	case x.artifacts[a.ID]:
		return fmt.Errorf("%s is in an earlier line", a.ID)
	case l.Text != nil:
		a.Data = []byte(*l.Text)
	case l.Data != nil:
		if a.Data, err = base64.StdEncoding.DecodeString(*l.Data); err != nil {
			return fmt.Errorf("data: %w", err)
		}
	default:
		why := clip(l.Without)
		if why == "" {
			why = "the file does not say why"
		}
		return fmt.Errorf("%s came without its content: %s", a.ID, why)
	}
	if err := a.Check(); err != nil {
		return fmt.Errorf("%s: %w", a.ID, err)
	}
	if m := x.lines.limits.Artifacts; m > 0 && x.bytes+int64(len(a.Data)) > m {
		return fmt.Errorf("%s has %d bytes, and all of a file have at most %d", a.ID, len(a.Data), m)
	}
	a.Size, a.Without = int64(len(a.Data)), ""
	x.bytes += a.Size
	x.artifacts[a.ID] = true
	x.f.Artifacts = append(x.f.Artifacts, a)
	return nil
}

func (x *extras) quarantine(raw []byte, entries map[string]bool) error {
	var l fileQuarantine
	if err := json.Unmarshal(raw, &l); err != nil {
		return fmt.Errorf("it can not be read: %w", err)
	}
	at, err := readTime(l.Timestamp)
	switch {
	case err != nil:
		return fmt.Errorf("timestamp: %w", err)
	case !entries[l.Entry]:
		return fmt.Errorf("there is no entry %q ahead of this line", clip(l.Entry))
	case l.What != LeaveImages && l.What != LeaveText && l.What != LeaveMessage:
		return fmt.Errorf("what: %q is not known", clip(l.What))
	case x.left[[2]string{l.Entry, l.What}]:
		return errors.New("it is said in an earlier line")
	}
	if l.Run != "" {
		if err := fileID("run", l.Run); err != nil {
			return err
		}
	}
	x.left[[2]string{l.Entry, l.What}] = true
	x.f.Quarantine = append(x.f.Quarantine, &store.Quarantine{EntryID: l.Entry, What: l.What, Reason: strings.ToValidUTF8(l.Reason, "\uFFFD"), RunID: l.Run, Created: at})
	return nil
}
