package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// FileOptions bound a log file. The zero value lets it grow.
type FileOptions struct {
	// MaxBytes is how large the file may get; the line that would make it larger
	// goes into a new one. 0: any size.
	MaxBytes int64
	// Keep is how many older files stay beside it: path.1 is the youngest. 0: none.
	Keep int
}

// File is a file that is appended to, for its owner alone. It is safe for
// concurrent use, and for other programs that move it away: [File.Reopen] begins a
// new one then.
type File struct {
	path string
	o    FileOptions

	mu   sync.Mutex
	f    *os.File
	size int64
}

// OpenFile opens a file to append to, and makes its folder.
func OpenFile(path string, o FileOptions) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f := &File{path: path, o: o}
	return f, f.open()
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.f, f.size = file, info.Size()
	return nil
}

// Write writes a line, or several, in one piece. What can not be written is lost;
// the next one is tried again.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	var rotated error
	if f.o.MaxBytes > 0 && f.size > 0 && f.size+int64(len(p)) > f.o.MaxBytes {
		rotated = f.rotate()
		if f.f == nil {
			return 0, rotated
		}
	}
	n, err := f.f.Write(p)
	f.size += int64(n)
	return n, errors.Join(err, rotated)
}

// rotate moves the older files and this one on by one number and begins a new one.
// Another process may have done so already. If it can not be done the file grows on.
func (f *File) rotate() error {
	here, err := f.f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(f.path)
	mine := err == nil && os.SameFile(here, there)
	err = f.f.Close() // some systems move no open files
	f.f = nil
	if mine {
		err = errors.Join(err, f.shift())
	}
	return errors.Join(err, f.open())
}

func (f *File) shift() error {
	if f.o.Keep <= 0 {
		return os.Remove(f.path)
	}
	name := func(n int) string {
		if n == 0 {
			return f.path
		}
		return fmt.Sprintf("%s.%d", f.path, n)
	}
	var errs []error
	if err := os.Remove(name(f.o.Keep)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for n := f.o.Keep - 1; n >= 0; n-- {
		if err := os.Rename(name(n), name(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Reopen goes on in the file that is at the path by now, or in a new one: for
// programs that move log files away.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.f != nil {
		err = f.f.Close()
		f.f = nil
	}
	return errors.Join(err, f.open())
}

// Close closes the file. It must not be written to any more.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
