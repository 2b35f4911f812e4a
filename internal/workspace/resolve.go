package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// blocked reports whether a name of a path segment usually holds secrets. The
// comparison ignores case, because some file systems do.
func blocked(segment string) bool {
	// Windows ignores dots and spaces at the end of a name.
	s := strings.TrimRight(strings.ToLower(segment), ". ")
	switch s {
	case ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".npm", ".pypirc", ".docker", ".gcloud",
		".env", ".envrc", ".bashrc", ".bash_profile", ".bash_history", ".zshrc", ".zprofile", ".zshenv", ".zsh_history", ".profile",
		".netrc", "_netrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".git-credentials", ".pgpass", ".my.cnf", ".htpasswd",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "authorized_keys", "known_hosts", "credentials":
		return true
	}
	return strings.HasPrefix(s, ".env.")
}

// blockedPath reports whether any segment of a slash path is blocked.
func blockedPath(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), blocked)
}

// resolve turns a path as a model writes it into one below the root, with
// slashes and without symbolic links. A path that does not exist resolves as
// far as it does; opening it then says that it is missing.
//
// This gives clear errors for honest mistakes. What keeps reads inside while
// the tree changes is open.
func (w *Workspace) resolve(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", refuse("A path can not hold a zero byte.")
	}
	if name == "" {
		name = "."
	}
	abs := filepath.FromSlash(name)
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(w.dir, abs)
	}
	abs = filepath.Clean(abs)
	// The names as written count too: a blocked link to a harmless file is
	// refused like the file that is meant.
	if rel, err := filepath.Rel(w.dir, abs); err == nil && blockedPath(filepath.ToSlash(rel)) {
		return "", refuseSecret(name)
	}
	rel, err := filepath.Rel(w.dir, realPath(abs))
	if err != nil || !filepath.IsLocal(rel) {
		return "", refuse("Path resolves outside project boundary: %s. Only files below %s can be read.", name, w.dir)
	}
	rel = filepath.ToSlash(rel)
	if blockedPath(rel) {
		return "", refuseSecret(name)
	}
	return rel, nil
}

func refuseSecret(name string) error {
	return refuse("%s is blocked: files of that name usually hold secrets. Ask the person for what you need from it.", name)
}

// realPath follows symbolic links of the longest part that exists and adds the
// rest.
func realPath(abs string) string {
	head, rest := abs, ""
	for {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, rest)
		}
		// A link whose target is missing leads where it points.
		if target, err := os.Readlink(head); err == nil && rest == "" {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(head), target)
			}
			return filepath.Join(realDir(filepath.Dir(target)), filepath.Base(target))
		}
		up := filepath.Dir(head)
		if up == head {
			return abs
		}
		rest = filepath.Join(filepath.Base(head), rest)
		head = up
	}
}

func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

var errSwapped = errors.New("the path changed while it was opened")

// open opens a resolved path for reading. Every segment must be what its name
// says at that moment: no symbolic link, and the very thing that was opened. So
// a link that is swapped in after resolve leads nowhere, not even to another
// place inside the root.
func (w *Workspace) open(rel string) (*os.File, fs.FileInfo, error) {
	dir := w.root
	segments := strings.Split(rel, "/")
	for i, s := range segments {
		info, err := dir.Lstat(s)
		last := i == len(segments)-1
		var f *os.File
		var sub *os.Root
		var now fs.FileInfo
		switch {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			err = errSwapped
		case !last && !info.IsDir():
			err = &fs.PathError{Op: "open", Path: rel, Err: syscall.ENOTDIR}
		case last && (info.Mode().IsRegular() || info.IsDir()):
			// Non-blocking, in case a pipe takes the file's place.
			if f, err = dir.OpenFile(s, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
				now, err = f.Stat()
			}
		case last:
			err = refuse("%s is not a file.", rel)
		default:
			if sub, err = dir.OpenRoot(s); err == nil {
				now, err = sub.Stat(".")
			}
		}
		if dir != w.root {
			dir.Close()
		}
		if err == nil && !os.SameFile(info, now) {
			err = errSwapped
		}
		switch {
		case err != nil && f != nil:
			f.Close()
			return nil, nil, err
		case err != nil && sub != nil:
			sub.Close()
			return nil, nil, err
		case err != nil:
			return nil, nil, err
		case last:
			return f, now, nil
		}
		dir = sub
	}
	return nil, nil, fs.ErrInvalid
}

// reason says why a path can not be opened, in words for a model.
func (w *Workspace) reason(name, rel string, err error) error {
	var r *refusal
	switch {
	case errors.As(err, &r):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return refuse("%s does not exist.%s", name, w.similar(rel))
	case errors.Is(err, fs.ErrPermission):
		return refuse("%s can not be read: permission denied.", name)
	case errors.Is(err, errSwapped):
		return refuse("%s changed while it was opened. Try again.", name)
	}
	return refuse("%s can not be opened.", name)
}

// similar names entries beside a missing one that are written alike.
func (w *Workspace) similar(rel string) string {
	dir, base := ".", rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		dir, base = rel[:i], rel[i+1:]
	}
	f, info, err := w.open(dir)
	if err != nil {
		return " Use glob to see which files there are."
	}
	defer f.Close()
	if !info.IsDir() {
		return " " + dir + " is a file."
	}
	names, _ := f.Readdirnames(5000)
	slices.Sort(names)
	stem := strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))
	var like []string
	for _, n := range names {
		other := strings.ToLower(strings.TrimSuffix(n, filepath.Ext(n)))
		alike := min(len(stem), len(other)) >= 1 && (strings.HasPrefix(other, stem) || strings.HasPrefix(stem, other))
		if alike && !blocked(n) && len(like) < 5 {
			if dir != "." {
				n = dir + "/" + n
			}
			like = append(like, n)
		}
	}
	if len(like) == 0 {
		return " Use glob to see which files there are."
	}
	return " Did you mean " + strings.Join(like, " or ") + "?"
}
