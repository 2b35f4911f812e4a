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
)

// FileName is the name of a document that is a file.
const FileName = "MEMORY.md"

// maxFile is the size beyond which a file is not read: nobody wrote it by hand.
const maxFile = 1 << 20

// Files keeps documents as files that people can read and edit: MEMORY.md in one
// folder for each scope. It does not look at tenants and users, so it serves one
// person. A change is written beside the file and renamed over it, so that readers
// see the one or the other. A person's editor that has the file open meanwhile is
// not known of: who saves last has the last word.
type Files struct {
	dirs map[Scope]string
	mu   sync.Mutex
}

// NewFiles keeps documents in folders, of which the global one is made when
// something is kept there. A scope whose folder is "" has an empty document.
func NewFiles(global, project string) *Files {
	return &Files{dirs: map[Scope]string{Global: global, Project: project}}
}

// Load implements Keeper.
func (f *Files) Load(_ context.Context, p Place) (*Document, error) {
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
	return Parse(s, string(data)), nil
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
	before := d.String()
	if err := change(d); err != nil {
		return err
	}
	if d.String() == before {
		return nil
	}
	if err := f.write(root, d.String(), p.Scope); err != nil {
		return f.fault(p.Scope, err, "Check that its folder can be written and the disk is not full. Nothing was changed.")
	}
	return nil
}

// temporary is what a document is written to before it takes the file's place. One
// that a crash left is written over.
const temporary = "." + FileName + ".agentd"

func (f *Files) write(root *os.Root, text string, s Scope) error {
	mode := fs.FileMode(0o600)
	if s == Project {
		mode = 0o644 // beside files that others read, too
	}
	if info, err := root.Lstat(FileName); err == nil {
		if !info.Mode().IsRegular() {
			return errors.New("it is not a regular file and is not written to")
		}
		mode = info.Mode().Perm()
	}
	_ = root.Remove(temporary)
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = root.Rename(temporary, FileName)
	}
	if err != nil {
		_ = root.Remove(temporary)
		return err
	}
	if dir, err := root.Open("."); err == nil {
		_ = dir.Sync() // not possible everywhere; the file itself is on the disk
		_ = dir.Close()
	}
	return nil
}

var _ Keeper = (*Files)(nil)
