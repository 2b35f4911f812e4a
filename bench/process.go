package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"agentd/bench/worker"
)

// process is a program under test.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// spawn starts a process that takes orders.
func spawn(ctx context.Context, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd: cmd, in: in, out: bufio.NewReader(out)}, cmd.Start()
}

// order gives an order and waits for the answer.
func (p *process) order(format string, args ...any) (*worker.Report, error) {
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		return nil, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	r := &worker.Report{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, err
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return r, nil
}

// end waits until the process has ended; if it ended badly that is an error.
func (p *process) end() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}

// server is a process that listens.
type server struct {
	cmd *exec.Cmd
	url string
}

var address = regexp.MustCompile(`(?:listens on |; )(http://[0-9.]+:[0-9]+)`)

// listen starts a process in a folder; it says where it listens on standard error.
// What it says later is read and dropped.
func listen(ctx context.Context, dir, name string, args ...string) (*server, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, pipe) }()
			return &server{cmd: cmd, url: m[1]}, nil
		}
		fmt.Fprintln(os.Stderr, lines.Text())
	}
	return nil, fmt.Errorf("%s ended without listening: %w", name, cmd.Wait())
}

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	_ = s.cmd.Wait() // how a server ends by a signal is its own matter
	return nil
}

// cpu is the user and system time of the server so far, in microseconds, from
// /proc/PID/stat, whose unit is 10 ms; so measure long stretches.
func (s *server) cpu() (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var u, k float64
	// Fields 14 and 15, counted after the name in parentheses; see proc_pid_stat(5).
	at := regexp.MustCompile(`\) .`).FindIndex(b)
	if at == nil {
		return 0, errors.New("unreadable /proc/PID/stat")
	}
	var skip string
	if _, err := fmt.Sscan(string(b[at[1]:]), &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &u, &k); err != nil {
		return 0, err
	}
	return (u + k) * 10_000, nil
}

// sim starts the simulator in a process of its own.
func (b *bench) sim(ctx context.Context, args ...string) (*server, error) {
	all := []string{"sim", "--addr", "127.0.0.1:0", "--no-cache"}
	for name := range scripts() {
		all = append(all, "--script", filepath.Join(b.dir, "scripts", name+".yaml"))
	}
	return listen(ctx, b.dir, b.agentd, append(all, args...)...)
}

// server starts agentd. Its workspace is its data folder, which has few files.
func (b *bench) server(ctx context.Context, configs, data string) (*server, error) {
	return listen(ctx, data, b.agentd, "serve", "--addr", "127.0.0.1:0", "--configs", configs, "--data", data)
}

// self starts this program in another role.
func self(ctx context.Context, args ...string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return spawn(ctx, exe, args...)
}

// client keeps as many connections as there are concurrent runs.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2048, DisableCompression: true}}
}

// size is how many bytes the files below a folder have.
func size(dir string) (float64, error) {
	var n float64
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			n += float64(info.Size())
		}
		return err
	})
	return n, err
}

// files raises the limit of open files as far as it goes: 1,000 streams are
// some thousand sockets.
func files() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		l.Cur = l.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
