package agentd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// agentsFile is the name of the files in which projects instruct agents.
const agentsFile = "AGENTS.md"

// maxAgentsLevels is how far above the working folder the top of its repository is
// looked for.
const maxAgentsLevels = 64

// projectFiles reads the AGENTS.md files of a project: from the top of the repository
// that the working folder is in (the nearest folder with .git) down to it; without a
// repository the one of the working folder alone. A file that is a link out of the
// project is not read. It is safe for concurrent use.
type projectFiles struct {
	dir string
	max int64

	mu   sync.Mutex
	seen []seenFile
	text string
}

// seenFile is a file as it was when it was read.
type seenFile struct {
	name string // relative to the top, with slashes
	size int64
	time time.Time
}

// read gives what the files say, outermost first, each under its name; "" if there
// is none. Of more than max bytes the rest is left out, where it says so: the file
// nearest to the working folder has the first claim. Files that did not change since
// the last time are not read again.
func (p *projectFiles) read() (string, error) {
	dir, err := filepath.Abs(p.dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	top, levels := dir, []string{agentsFile}
	for at, n := dir, 0; n < maxAgentsLevels; n++ {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			top = at
			break
		}
		above := filepath.Dir(at)
		if above == at {
			break
		}
		at = above
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return "", err
	}
	if rel != "." {
		folder := ""
		for _, part := range strings.Split(filepath.ToSlash(rel), "/") {
			folder += part + "/"
			levels = append(levels, folder+agentsFile)
		}
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", err
	}
	defer root.Close()
	var found []seenFile
	for _, name := range levels {
		info, err := root.Stat(filepath.FromSlash(name))
		if err != nil || !info.Mode().IsRegular() {
			continue // none, or a link that leads out
		}
		found = append(found, seenFile{name, info.Size(), info.ModTime()})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if same(p.seen, found) {
		return p.text, nil
	}
	text, err := p.join(root, found)
	if err != nil {
		return "", err
	}
	p.seen, p.text = found, text
	return text, nil
}

func same(a, b []seenFile) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name || a[i].size != b[i].size || !a[i].time.Equal(b[i].time) {
			return false
		}
	}
	return true
}

// join reads the files, the nearest first, and puts them in order.
func (p *projectFiles) join(root *os.Root, files []seenFile) (string, error) {
	parts := make([]string, 0, len(files))
	room := p.max
	for i := len(files) - 1; i >= 0; i-- {
		text, cut, err := readSome(root, files[i].name, room)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went away just now
		}
		if err != nil {
			return "", err
		}
		room -= int64(len(text))
		if text = strings.TrimSpace(text); text == "" && !cut {
			continue
		}
		if cut {
			text += fmt.Sprintf("\n[The rest of this file is left out: it has %d bytes, and %d are read of all %s files together.]", files[i].size, p.max, agentsFile)
		}
		parts = append([]string{"## " + files[i].name + "\n\n" + text}, parts...)
	}
	if len(parts) == 0 {
		return "", nil
	}
	return "# Instructions of the project\n\nThey are for work in its folders; the nearer to the working folder a file is, the more it counts.\n\n" + strings.Join(parts, "\n\n"), nil
}

// readSome reads at most n bytes of a file, as valid text; cut is whether there are more.
func readSome(root *os.Root, name string, n int64) (text string, cut bool, err error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, n+1))
	if err != nil {
		return "", false, err
	}
	if cut = int64(len(b)) > n; cut {
		b = b[:n]
		for len(b) > 0 && !utf8.Valid(b[len(b)-min(len(b), utf8.UTFMax):]) && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
		if r, size := utf8.DecodeLastRune(b); r == utf8.RuneError && size == 1 {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), cut, nil
}
