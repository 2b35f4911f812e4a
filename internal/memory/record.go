package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"agentd/fault"
	"agentd/internal/wholefile"
)

// judges is whether a document has to be judged: the global one is in the person's own
// folder, and so is the project's if the folders are the same.
func (f *Files) judges(s Scope) bool {
	if s != Project || f.TrustProject || f.dirs[Project] == "" {
		return false
	}
	data, err := os.Stat(f.dirs[Global])
	if err != nil {
		return true
	}
	project, err := os.Stat(f.dirs[Project])
	return err != nil || !os.SameFile(data, project)
}

// maxRecord is the size beyond which a record is not read: more than the largest bound of
// its lines needs.
const maxRecord = 8 << 20

const tooManyLines = "Make it shorter, for models read it whole; or raise memory.max_trusted_lines in agentd.yaml."

func (f *Files) maxTrusted() int {
	if f.MaxTrusted <= 0 {
		return 10_000
	}
	return f.MaxTrusted
}

// folder is the project's folder by the name that does not depend on the way to it.
func (f *Files) folder() string {
	dir := f.dirs[Project]
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// recordName is the file in the data folder that says what is trusted in the project:
// one for each, so that processes with different projects do not meet.
func (f *Files) recordName() string {
	sum := sha256.Sum256([]byte(f.folder()))
	return "memory-trusted-" + hex.EncodeToString(sum[:8]) + ".json"
}

// record reads what is trusted. What can not be read trusts nothing: agents go on with
// the document, which is quoted to them then.
func (f *Files) record() record {
	root, err := f.open(Global, false)
	if root == nil || err != nil {
		return record{}
	}
	defer func() { _ = root.Close() }()
	file, err := root.Open(f.recordName())
	if err != nil {
		return record{}
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return record{}
	}
	return parseRecord(data)
}

func (f *Files) keepRecord(r record) error {
	r.Version, r.Folder = 1, f.folder()
	data, err := json.Marshal(&r)
	if err != nil {
		return &fault.Error{Op: "memory", Kind: fault.Internal, Err: err}
	}
	name := f.recordName()
	place := filepath.Join(f.dirs[Global], name)
	if f.dirs[Global] == "" {
		return &fault.Error{Op: "memory", Kind: fault.Unsupported, Field: f.Path(Project), Err: errNoRecord, Hint: "Name a data folder."}
	}
	root, err := f.open(Global, true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := wholefile.Replace(root, name, append(data, '\n'), 0o600); err != nil {
		return &fault.Error{Op: "memory", Kind: fault.Unavailable, Field: place, Err: err, Hint: "Check that the data folder can be written and the disk is not full. Nothing was changed."}
	}
	return nil
}

// Trust implements truster.
func (f *Files) Trust(p Place, ids []string) ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.judges(p.Scope) {
		return nil, nil
	}
	root, err := f.open(p.Scope, false)
	if root == nil || err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	d, err := f.read(root, p.Scope)
	if err != nil {
		return nil, err
	}
	said := Parse(p.Scope, d.String()) // what comments say, which is believed from now on
	chosen := map[string]bool{}
	for _, id := range ids {
		chosen[id] = true
	}
	var out []Entry
	for i := range d.blocks {
		b := &d.blocks[i]
		if !b.foreign || len(ids) > 0 && (b.entry == nil || !chosen[b.entry.ID]) {
			continue
		}
		b.foreign = false
		if b.entry == nil {
			continue
		}
		e := *b.entry
		e.Origin = ""
		if have := said.blocks[i].entry; have != nil {
			e = *have
		}
		out = append(out, e)
	}
	r := f.record()
	grown, err := r.add(d.trusted(), f.maxTrusted())
	if err != nil {
		return nil, &fault.Error{Op: "memory", Kind: fault.TooLarge, Field: f.Path(Project), Err: err, Hint: tooManyLines}
	}
	if !grown {
		return out, nil
	}
	if err := f.keepRecord(r); err != nil {
		return nil, err
	}
	return out, nil
}

// Trust implements truster. What is in rows nobody else writes to.
func (l *Local) Trust(p Place, ids []string) ([]Entry, error) {
	if t, ok := l.of(p).(truster); ok {
		return t.Trust(p, ids)
	}
	return nil, nil
}

// Trust makes what others wrote into the project's document the person's own, as it is
// there now: the entries with these ids or, if there are none, everything, headings
// too. It gives the entries that were not trusted until now.
func (m *Memory) Trust(ctx context.Context, who Who, ids []string) ([]Entry, error) {
	all, err := m.List(ctx, who)
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, e := range all {
		have[e.ID] = true
	}
	for _, id := range ids {
		if !have[id] {
			return nil, missing(id)
		}
	}
	if t, ok := m.keeper.(truster); ok {
		return t.Trust(who.place(Project), ids)
	}
	return nil, nil
}

var (
	_ truster = (*Files)(nil)
	_ truster = (*Local)(nil)
)
