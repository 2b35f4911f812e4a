package mcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/internal/logs"
)

// inherited are the variables that a server's process gets from agentd's own
// environment. Everything else in there may be a secret.
var inherited = [...]string{"PATH", "HOME", "LANG", "TMPDIR",
	// Programs on Windows do not start without these.
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}

// environment is the whole environment of a server's process.
func environment(own map[string]string, lookup func(string) (string, bool)) []string {
	n := 4
	if runtime.GOOS == "windows" {
		n = len(inherited)
	}
	var env []string
	for _, name := range inherited[:n] {
		if _, set := own[name]; set {
			continue
		}
		if v, ok := lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range own {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	return env
}

// process is a stdio server's program with its process group.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *ring
	grace  time.Duration

	stopOnce sync.Once
	// exited is closed when the program has ended and its group was killed.
	exited chan struct{}
	// heard is closed when its stderr was read to the end, which a program that it
	// left behind may delay.
	heard chan struct{}
	// status is how it ended; read it after exited.
	status error
}

// startProcess starts the program. The process does not depend on a context:
// stop ends it.
func startProcess(server string, cfg *ServerConfig, log *slog.Logger, grace time.Duration) (*process, error) {
	path, err := exec.LookPath(cfg.Command)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, err
	}
	if cfg.Cwd != "" && !filepath.IsAbs(path) {
		// A relative program is found from here, not from the server's folder.
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	p := &process{grace: grace, stderr: &ring{}, exited: make(chan struct{}), heard: make(chan struct{})}
	p.cmd = exec.Command(path, cfg.Args...)
	p.cmd.Dir = cfg.Cwd
	p.cmd.Env = environment(cfg.Env, os.LookupEnv)
	separate(p.cmd)
	var files []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				files = append(files, r, w)
			}
		}
		return r, w
	}
	err = nil
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	started := make(chan error, 1)
	if err == nil {
		p.stdin, p.stdout = inW, outR
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, errW
		go p.run(started)
		err = <-started
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, err
	}
	inR.Close()
	outW.Close()
	errW.Close()
	go func() {
		defer close(p.heard)
		p.stderr.follow(errR, func(line string) {
			log.Debug("MCP server stderr", "server", server, "line", logs.Report(line))
		})
	}()
	return p, nil
}

// run starts the program and waits for it, on one thread: on Linux the kernel
// tells the program of agentd's death by the death of the thread that started it.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.status = p.cmd.Wait()
	// What the program left behind is ended with it, and holds no pipe open.
	signalGroup(p.cmd.Process, true)
	p.stdin.Close()
	close(p.exited)
}

// stop ends the program: end of input, then a request, then force, with grace
// between. It returns at once; exited tells when it is done.
func (p *process) stop() {
	p.stopOnce.Do(func() {
		p.stdin.Close()
		go func() {
			for _, kill := range []bool{false, true} {
				select {
				case <-p.exited:
					return
				case <-time.After(p.grace):
					signalGroup(p.cmd.Process, kill)
				}
			}
		}()
	})
}

// kill ends the program with its group by force, and does not wait.
func (p *process) kill() {
	p.stop()
	select {
	case <-p.exited:
	default:
		signalGroup(p.cmd.Process, true)
	}
}

// wait waits for the end of the program, at most until ctx ends.
func (p *process) wait(ctx context.Context) {
	select {
	case <-p.exited:
	case <-ctx.Done():
	}
	p.stdout.Close()
}

// Bounds of what is kept of a program's stderr.
const (
	ringLines = 50
	ringLine  = 500
)

// ring keeps the last lines of a stream.
type ring struct {
	mu    sync.Mutex
	lines []string
}

// follow reads r to its end.
func (g *ring) follow(r io.ReadCloser, tell func(string)) {
	defer r.Close()
	br := bufio.NewReaderSize(r, 16<<10)
	for {
		line, err := br.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if text := preview(line, ringLine); text != "" {
			g.mu.Lock()
			g.lines = append(g.lines, text)
			if len(g.lines) > ringLines {
				g.lines = slices.Delete(g.lines, 0, len(g.lines)-ringLines)
			}
			g.mu.Unlock()
			tell(text)
		}
		for cut { // the rest of a long line is not kept
			_, err = br.ReadSlice('\n')
			cut = errors.Is(err, bufio.ErrBufferFull)
		}
		if err != nil {
			return
		}
	}
}

// last gives the last n lines.
func (g *ring) last(n int) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines[max(0, len(g.lines)-n):], "\n")
}

// readLine reads one line of at most limit bytes. Of a longer one it gives the
// first and the last bytes and reports that it was cut; the rest is skipped.
func readLine(r *bufio.Reader, limit int) (line, tail []byte, cut bool, err error) {
	return readLineWhile(r, limit, func([]byte, int) bool { return true })
}

// errEndless ends the reading of a line that nobody waits for any longer.
var errEndless = errors.New("a line without end")

// readLineWhile is readLine that asks more whether the rest of a line that is too
// long is waited for: first when it crosses the limit, then after each part. more
// gets the first bytes of the line and how many were skipped.
func readLineWhile(r *bufio.Reader, limit int, more func(head []byte, skipped int) bool) (line, tail []byte, cut bool, err error) {
	var buf []byte
	skipped := 0
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case cut:
			skipped += len(part)
			tail = append(tail, part...)
			if len(tail) > 2*edge {
				tail = append(tail[:0], tail[len(tail)-edge:]...)
			}
		case len(buf)+len(part) > limit:
			cut = true
			tail = append(tail, part[max(0, len(part)-edge):]...)
			buf = append([]byte(nil), buf[:min(len(buf), edge)]...)
			if len(buf) < edge {
				buf = append(buf, part[:min(len(part), edge-len(buf))]...)
			}
		default:
			buf = append(buf, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			if cut && !more(buf, skipped) {
				return buf, tail, true, errEndless
			}
			continue
		}
		return buf, tail, cut, err
	}
}

// edge is how much is kept of either end of a message that is too large.
const edge = 1 << 10
