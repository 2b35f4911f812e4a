// Package wholefile writes files that are there whole or not at all, also after a crash
// and when several processes write the same one. What is written goes to a file of its
// own beside the one that is meant, is brought to the disk, and takes its name then.
//
// Names are below an [os.Root], so that links in its folders do not lead out of it.
// Only regular files are replaced: something else with the name, a link too, is left as
// it is and is an error.
package wholefile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// forgotten is how much older than a new file one must be that was left beside it by a
// crash, to be removed. Another process may still write a younger one.
const forgotten = time.Hour

// Replace writes a file in the place of the one that is there, whose permissions it has,
// or a new one with mode. Its folder must be there. Of two who replace a file at the same
// time the later one's is kept. After an error the file is as it was.
func Replace(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	return onDisk().replace(root, name, data, mode)
}

// Create writes a file that is not there yet, and the folders that it needs. If anything
// has its name the error is [fs.ErrExist], and nothing is changed: of several who create
// a file at the same time exactly one does. Readers see it whole. (Where the file system
// has no hard links it is empty for a moment, and stays so after a crash just then.)
func Create(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	return onDisk().create(root, name, data, mode)
}

// disk is what tests can not see or have otherwise.
type disk struct {
	sync func(*os.File) error
	link func(root *os.Root, from, to string) error
}

func onDisk() disk { return disk{(*os.File).Sync, (*os.Root).Link} }

func (d disk) replace(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	info, err := root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errors.New("it is not a regular file and is not written to")
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temporary, err := d.beside(root, name, data, mode, err == nil)
	if err != nil {
		return err
	}
	if err := root.Rename(temporary, name); err != nil {
		_ = root.Remove(temporary)
		return err
	}
	d.syncFolder(root, path.Dir(name))
	return nil
}

func (d disk) create(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	if _, err := root.Lstat(name); err == nil {
		return exists(name)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	temporary, err := d.beside(root, name, data, mode, false)
	if err != nil {
		return err
	}
	defer func() { _ = root.Remove(temporary) }()
	if err := d.link(root, temporary, name); err != nil {
		if _, there := root.Lstat(name); there == nil {
			return exists(name)
		}
		// Perhaps there are no hard links here. Whoever makes the empty file has the name.
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Close(), root.Rename(temporary, name)); err != nil {
			_ = root.Remove(name)
			return err
		}
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) { // those that were made, too
		d.syncFolder(root, dir)
		if dir == "." {
			return nil
		}
	}
}

func exists(name string) error {
	return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
}

// beside writes a new file beside the one that is meant and gives its name. exact has it
// have the permissions of mode whatever new files get here.
func (d disk) beside(root *os.Root, name string, data []byte, mode fs.FileMode, exact bool) (string, error) {
	temporary := path.Join(path.Dir(name), before(name)+rand.Text()+after)
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	if exact {
		err = f.Chmod(mode)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	info, e := f.Stat()
	if err = errors.Join(err, e, d.sync(f), f.Close()); err != nil {
		_ = root.Remove(temporary)
		return "", err
	}
	tidy(root, name, info.ModTime())
	return temporary, nil
}

// What files that become others are called: hidden, and unlike anything that somebody
// looks for.
const after = ".agentd"

func before(name string) string { return "." + path.Base(name) + "." }

// tidy removes what crashes left beside a file. If it can not, that does no harm.
func tidy(root *os.Root, name string, now time.Time) {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return
	}
	entries, _ := dir.ReadDir(-1)
	_ = dir.Close()
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), before(name)) || !strings.HasSuffix(e.Name(), after) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > forgotten {
			_ = root.Remove(path.Join(path.Dir(name), e.Name()))
		}
	}
}

// syncFolder brings the names of a folder to the disk, where that is possible; what the
// files hold is there already.
func (d disk) syncFolder(root *os.Root, name string) {
	if dir, err := root.Open(name); err == nil {
		_ = d.sync(dir)
		_ = dir.Close()
	}
}
