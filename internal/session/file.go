package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"agentd/internal/store"
	"agentd/message"
)

// FileVersion is the version of the files that [Write] writes.
const FileVersion = 1

// fileTime is how times are written.
const fileTime = "2006-01-02T15:04:05.000Z"

// File is a session as a file of one JSON object a line: a header, then the entries,
// parents ahead of their children, and what belongs to them.
type File struct {
	// ID is that of the session which the file was made of.
	ID       string
	Title    string
	Metadata json.RawMessage
	// Leaf is the entry at which the session stood.
	Leaf string
	// Created is in Unix milliseconds, 0 if the file does not say.
	Created int64
	// Entries have the ids of the file, and the runs that it names.
	Entries []*store.Entry
	// Artifacts have their contents. Quarantine has the entries of the file.
	Artifacts  []*Artifact
	Quarantine []*store.Quarantine
	// Format is "agentd" or "pi".
	Format string
	// Warnings say what was left out, or taken otherwise than it is written, and where.
	Warnings []string
}

// FileLimits bound what [Read] takes. 0 means no limit.
type FileLimits struct {
	// Line bounds one line, Bytes the file, both in bytes.
	Line, Bytes int64
	// Entries bounds them, and the artifacts as well. Artifacts bounds the contents of those,
	// in bytes: what is over it is left out with a warning.
	Entries   int
	Artifacts int64
}

// LineError says where a file is wrong.
type LineError struct {
	Line int // counted from 1
	Err  error
}

// Error is the message, with the line.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// ErrTooLarge is why a file, or one of its lines, is not read.
var ErrTooLarge = errors.New("it is too large")

type fileHeader struct {
	Type      string          `json:"type"`
	Version   int             `json:"version"`
	Format    string          `json:"format,omitempty"`
	ID        string          `json:"id"`
	Timestamp string          `json:"timestamp"`
	Title     string          `json:"title,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Leaf      string          `json:"leaf,omitempty"`
	// CWD is what only Pi's files have.
	CWD *string `json:"cwd,omitempty"`
}

type fileEntry struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Parent    *string         `json:"parentId"`
	Timestamp string          `json:"timestamp"`
	Run       string          `json:"run,omitempty"`
	Message   json.RawMessage `json:"message,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// Write writes a session as a file. Entries whose parent is not among them are left
// out with everything behind them, and so is a body that can not be read: what is
// written can be read back.
func Write(w io.Writer, s *store.Session, entries []*store.Entry) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	t := NewTree(entries, s.Leaf)
	there := map[string]bool{"": true}
	var order []*Node
	for _, n := range t.Nodes {
		if !there[n.Parent] {
			continue
		}
		there[n.ID] = true
		order = append(order, n)
	}
	h := fileHeader{Type: "session", Version: FileVersion, Format: "agentd", ID: s.ID, Timestamp: writeTime(s.Created), Title: s.Title, Leaf: s.Leaf}
	if json.Valid(s.Metadata) {
		h.Metadata = s.Metadata
	}
	if !there[s.Leaf] {
		h.Leaf = ""
		if len(order) > 0 {
			h.Leaf = order[len(order)-1].ID
		}
	}
	if err := enc.Encode(&h); err != nil {
		return err
	}
	for _, n := range order {
		e := fileEntry{Type: n.Kind, ID: n.ID, Timestamp: writeTime(n.Created), Run: strings.TrimPrefix(n.RunID, Foreign)}
		if n.Parent != "" {
			e.Parent = &n.Parent
		}
		var m message.Message
		switch {
		case n.Kind == KindMessage && json.Unmarshal(n.Body, &m) == nil && m.Role != "":
			e.Message = n.Body
		case n.Kind == KindMessage, len(n.Body) > 0 && !json.Valid(n.Body):
			// It keeps its place, because there may be entries behind it.
			e.Type, e.Data = KindCustom, json.RawMessage(`{"type":"agentd.damaged"}`)
		default:
			e.Data = Unasked(n.Kind, n.Body)
		}
		if err := enc.Encode(&e); err != nil {
			return err
		}
	}
	return b.Flush()
}

// Foreign is what the run of an entry begins with that is of a run of another session,
// or of another store: nobody finds a run by it.
const Foreign = "from:"

// Read reads a file of [Write], of seed 001's form, or of Pi (versions 1 to 3). The
// error is a [*LineError], or that of the reader. What is wrong with a file of agentd
// is an error; in one of Pi lines that can not be read are left out with a warning,
// as Pi itself does.
func Read(r io.Reader, limits *FileLimits) (*File, error) {
	if limits == nil {
		limits = &FileLimits{}
	}
	lines := &lineReader{r: bufio.NewReaderSize(r, 64<<10), limits: limits}
	raw, err := lines.next()
	if errors.Is(err, io.EOF) {
		return nil, &LineError{1, errors.New("the file is empty: it has to begin with a line of type session")}
	}
	if err != nil {
		return nil, err
	}
	var h fileHeader
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, &LineError{lines.n, fmt.Errorf("it is not a session's header: %w", err)}
	}
	if h.Type != "session" {
		return nil, &LineError{lines.n, fmt.Errorf("it has to be of type session, not %q", clip(h.Type))}
	}
	f := &File{ID: clip(h.ID), Title: h.Title, Metadata: h.Metadata, Leaf: h.Leaf}
	if f.Created, err = readTime(h.Timestamp); err != nil {
		return nil, &LineError{lines.n, fmt.Errorf("timestamp: %w", err)}
	}
	pi := h.Format == "" && (h.Version != FileVersion || h.CWD != nil)
	switch {
	case pi && h.Version > piVersion || !pi && h.Version > FileVersion:
		return nil, &LineError{lines.n, fmt.Errorf("version %d is newer than what this agentd knows", h.Version)}
	case h.Version < 0 || !pi && h.Version == 0:
		return nil, &LineError{lines.n, fmt.Errorf("there is no version %d", h.Version)}
	case h.Format != "" && h.Format != "agentd":
		return nil, &LineError{lines.n, fmt.Errorf("format %q is not known", clip(h.Format))}
	}
	if len(f.Metadata) > 0 && !bytes.HasPrefix(bytes.TrimSpace(f.Metadata), []byte("{")) {
		return nil, &LineError{lines.n, errors.New("metadata must be a JSON object")}
	}
	if pi {
		f.Format = "pi"
		f.Metadata, f.Leaf = nil, ""
		return f, readPi(f, &h, lines)
	}
	f.Format = "agentd"
	return f, readOwn(f, lines)
}

func readOwn(f *File, lines *lineReader) error {
	seen := map[string]bool{}
	more := extras{f: f, lines: lines, artifacts: map[string]bool{}, left: map[[2]string]bool{}}
	for {
		raw, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if other, err := more.take(raw, seen); err != nil {
			return err
		} else if other {
			continue
		}
		e, err := ownEntry(raw)
		switch {
		case err != nil:
			return &LineError{lines.n, err}
		case seen[e.ID]:
			return &LineError{lines.n, fmt.Errorf("id: %q is taken by an earlier line", e.ID)}
		case e.Parent != "" && !seen[e.Parent]:
			return &LineError{lines.n, fmt.Errorf("parentId: there is no entry %q ahead of this line", clip(e.Parent))}
		}
		if err := lines.entry(len(f.Entries)); err != nil {
			return err
		}
		seen[e.ID] = true
		f.Entries = append(f.Entries, e)
	}
	if f.Leaf != "" && !seen[f.Leaf] {
		return &LineError{1, fmt.Errorf("leaf: there is no entry %q", clip(f.Leaf))}
	}
	if f.Leaf == "" && len(f.Entries) > 0 {
		f.Leaf = f.Entries[len(f.Entries)-1].ID // as files without a leaf mean it
	}
	return nil
}

// ownEntry reads a line of agentd's own form.
func ownEntry(raw []byte) (*store.Entry, error) {
	var l fileEntry
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("it is not an entry: %w", legible(err))
	}
	if l.Type == "" || l.Type == "session" || len(l.Type) > MaxLabel || !utf8.ValidString(l.Type) || strings.ContainsFunc(l.Type, func(r rune) bool { return r <= ' ' }) {
		return nil, fmt.Errorf("type: %q is no kind of entry", clip(l.Type))
	}
	if err := fileID("id", l.ID); err != nil {
		return nil, err
	}
	e := &store.Entry{ID: l.ID, Kind: l.Type}
	if l.Parent != nil {
		e.Parent = *l.Parent
	}
	if l.Run != "" {
		if err := fileID("run", l.Run); err != nil {
			return nil, err
		}
		e.RunID = l.Run
	}
	var err error
	if e.Created, err = readTime(l.Timestamp); err != nil {
		return nil, fmt.Errorf("timestamp: %w", err)
	}
	if l.Type != KindMessage {
		data := l.Data
		if data == nil {
			if data, err = inline(raw); err != nil {
				return nil, err
			}
		}
		e.Body, err = CheckData(l.Type, data)
		return e, err
	}
	var m message.Message
	if len(l.Message) == 0 {
		return nil, errors.New("message: is missing")
	}
	if m, err = readMessage(l.Message); err != nil {
		return nil, err
	}
	e.Body, err = bodyOf(&m)
	return e, err
}

// readMessage reads a message whose content may be a string.
func readMessage(raw json.RawMessage) (m message.Message, err error) {
	var c struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return m, fmt.Errorf("message: %w", legible(err))
	}
	var text string
	if json.Unmarshal(c.Content, &text) == nil && len(c.Content) > 0 && c.Content[0] == '"' {
		var with map[string]json.RawMessage
		if err := json.Unmarshal(raw, &with); err != nil {
			return m, fmt.Errorf("message: %w", legible(err))
		}
		delete(with, "content")
		if raw, err = json.Marshal(with); err != nil {
			return m, fmt.Errorf("message: %w", legible(err))
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("message: %w", legible(err))
	}
	if text != "" {
		m.Content = []message.Block{message.Text(text)}
	}
	return m, CheckMessage(&m)
}

func bodyOf(m *message.Message) (json.RawMessage, error) {
	b, err := m.AppendJSON(nil)
	if err == nil && !json.Valid(b) {
		err = errors.New("it is not JSON")
	}
	if err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	return compact(b), nil
}

// inline gathers the members of a line that are the entry's own, as seed 001 has them.
func inline(raw []byte) (json.RawMessage, error) {
	var with map[string]json.RawMessage
	if err := json.Unmarshal(raw, &with); err != nil {
		return nil, err
	}
	for _, k := range []string{"type", "id", "parentId", "timestamp", "run"} {
		delete(with, k)
	}
	if len(with) == 0 {
		return nil, nil
	}
	return json.Marshal(with)
}

// lineReader gives the lines of a file that are not empty.
type lineReader struct {
	r      *bufio.Reader
	limits *FileLimits
	n      int // of the last line
	bytes  int64
	buf    []byte
}

func (l *lineReader) next() ([]byte, error) {
	for {
		l.buf = l.buf[:0]
		l.n++
		for {
			part, err := l.r.ReadSlice('\n')
			l.bytes += int64(len(part))
			if m := l.limits.Bytes; m > 0 && l.bytes > m {
				return nil, &LineError{l.n, fmt.Errorf("%w: the file has more than %d bytes", ErrTooLarge, m)}
			}
			if m := l.limits.Line; m > 0 && int64(len(l.buf)+len(part)) > m+1 {
				return nil, &LineError{l.n, fmt.Errorf("%w: the line has more than %d bytes", ErrTooLarge, m)}
			}
			l.buf = append(l.buf, part...)
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(bytes.TrimSpace(l.buf)) == 0) {
				return nil, err
			}
			break
		}
		if line := bytes.TrimSpace(l.buf); len(line) > 0 {
			return line, nil
		}
	}
}

// entry refuses one more entry than there may be.
func (l *lineReader) entry(have int) error {
	if m := l.limits.Entries; m > 0 && have >= m {
		return &LineError{l.n, fmt.Errorf("%w: the file has more than %d entries", ErrTooLarge, m)}
	}
	return nil
}

func fileID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%s: is missing", field)
	case len(id) > MaxLabel:
		return fmt.Errorf("%s: has more than %d bytes", field, MaxLabel)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%s: has control characters", field)
	}
	return nil
}

func writeTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(fileTime) }

// readTime gives Unix milliseconds; 0 for "".
func readTime(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("%q is no time as in RFC 3339", clip(s))
	}
	if y := t.UTC().Year(); y < 1970 || y > 9999 {
		return 0, fmt.Errorf("%q is not between 1970 and 9999", clip(s))
	}
	return t.UnixMilli(), nil
}

func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return s
}
