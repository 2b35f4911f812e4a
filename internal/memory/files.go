package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"agentd/fault"
	"agentd/internal/wholefile"
)

// FileName is the name of a document that is a file.
const FileName = "MEMORY.md"

// maxFile is the size beyond which a file is not read: nobody wrote it by hand.
const maxFile = 1 << 20

// Files keeps documents as files that people can read and edit: MEMORY.md in one
// folder for each scope. It does not look at tenants and users, so it serves one
// person. The project's folder may be somebody else's work, such as a repository that
// was cloned: what agentd did not write there and nobody trusted has the origin
// [Workspace]. A change is written beside the file and renamed over it, so that readers
// see the one or the other. A person's editor that has the file open meanwhile is
// not known of: who saves last has the last word.
type Files struct {
	// TrustProject takes whatever is in the project's document for the person's own.
	// It is set before the first use.
	TrustProject bool
	// MaxTrusted is how many lines of the project's document may be trusted, those that
	// are not in it just now included; 0 means 10,000. It is set before the first use.
	MaxTrusted int

	dirs map[Scope]string
	// mu is held while a document is changed together with the record of what is
	// trusted, and for reading while both are read.
	mu sync.RWMutex
}

// NewFiles keeps documents in folders, of which the global one is made when
// something is kept there. A scope whose folder is "" has an empty document.
func NewFiles(global, project string) *Files {
	return &Files{dirs: map[Scope]string{Global: global, Project: project}}
}

// Load implements Keeper.
func (f *Files) Load(_ context.Context, p Place) (*Document, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	root, err := f.open(p.Scope, false)
	if root == nil || err != nil {
		return &Document{scope: p.Scope}, err
	}
	defer func() { _ = root.Close() }()
	return f.read(root, p.Scope)
}

// Path is where a document is, for people; "" if it is nowhere.
func (f *Files) Path(s Scope) string {
	if f.dirs[s] == "" {
		return ""
	}
	return filepath.Join(f.dirs[s], FileName)
}

func (f *Files) fault(s Scope, err error, hint string) error {
	return &fault.Error{Op: "memory", Kind: fault.Unavailable, Field: f.Path(s), Err: err, Hint: hint}
}

// open opens the folder of a scope; nil if it is not there. What is in the folder
// can not lead out of it: a file that came with somebody's repository may be a link.
func (f *Files) open(s Scope, create bool) (*os.Root, error) {
	dir := f.dirs[s]
	if dir == "" {
		if create {
			return nil, &fault.Error{Op: "memory", Kind: fault.Unsupported, Field: string(s), Err: errors.New("nothing is remembered of this here"),
				Hint: "Name a data folder or a workspace."}
		}
		return nil, nil
	}
	if create && s == Global {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, f.fault(s, err, "Check that the data folder can be written.")
		}
	}
	root, err := os.OpenRoot(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !create:
		return nil, nil
	case err != nil:
		return nil, f.fault(s, err, "Check that the folder is there and can be read.")
	}
	return root, nil
}

func (f *Files) read(root *os.Root, s Scope) (*Document, error) {
	file, err := root.Open(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return &Document{scope: s}, nil
	}
	if err != nil {
		return &Document{scope: s}, f.fault(s, err, "Check its permissions.")
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return &Document{scope: s}, f.fault(s, err, "Move it away.")
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		return &Document{scope: s}, f.fault(s, err, "Make it shorter; models read it whole.")
	}
	d := Parse(s, string(data))
	if f.judges(s) {
		r := f.record()
		d.judge(r.has())
	}
	return d, nil
}

// Change implements Keeper.
func (f *Files) Change(_ context.Context, p Place, change func(*Document) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	root, err := f.open(p.Scope, true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	d, err := f.read(root, p.Scope)
	if err != nil {
		return err
	}
	before, had := d.String(), d.trusted()
	if err := change(d); err != nil {
		return err
	}
	text, has := d.String(), d.trusted()
	var r record
	recorded := f.judges(p.Scope) && f.dirs[Global] != ""
	if recorded {
		// Ahead of the document: hashes of lines that are not there do no harm, and a
		// line that agentd wrote is never without.
		r = f.record()
		grown, err := r.add(has, f.maxTrusted())
		if err != nil {
			return &fault.Error{Op: "memory", Kind: fault.TooLarge, Field: f.Path(p.Scope), Err: err, Hint: tooManyLines}
		}
		if grown {
			if err := f.keepRecord(r); err != nil {
				return err
			}
		}
	}
	if text == before {
		return nil
	}
	mode := fs.FileMode(0o600)
	if p.Scope == Project {
		mode = 0o644 // beside files that others read, too
	}
	if err := wholefile.Replace(root, FileName, []byte(text), mode); err != nil {
		return f.fault(p.Scope, err, "Check that its folder can be written and the disk is not full. Nothing was changed.")
	}
	if recorded && r.drop(had, has) {
		// The change is made. If this fails, words that were trusted once are so again
		// if somebody puts them back.
		_ = f.keepRecord(r)
	}
	return nil
}

var _ Keeper = (*Files)(nil)
