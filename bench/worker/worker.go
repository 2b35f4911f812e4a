package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Loop is the task that all programs are given: a system prompt, one tool, and a
// user message, upon which the model calls the tool Steps times and then answers.
const (
	System      = "You are a careful assistant. Use the echo tool as long as there is something to echo, then answer briefly."
	User        = "Please echo what you are told to, step by step."
	ToolName    = "echo"
	ToolAbout   = "Gives back the text it is given."
	ToolSchema  = `{"type":"object","properties":{"text":{"type":"string","description":"The text to give back."}},"required":["text"]}`
	LoopModel   = "loop"
	StreamModel = "stream"
	// Steps is how many steps with a tool call a run of LoopModel has.
	Steps = 20
	// Chunks is how many chunks of text a run of StreamModel has.
	Chunks = 2000
)

// Program is what a process under test does.
type Program struct {
	// Run makes one run and returns when it has ended. It is called concurrently.
	Run func(ctx context.Context) error
	// Do are the further orders by name. Nil: none.
	Do map[string]func(ctx context.Context, args []string) (map[string]float64, error)
}

// Report answers an order.
type Report struct {
	Error string `json:"error,omitempty"`
	// Walls are the wall times of serial runs, in microseconds.
	Walls []float64 `json:"walls,omitempty"`
	// Runs is how many runs were made, ElapsedUS and CPUUS what they took, in
	// microseconds.
	Runs      int     `json:"runs"`
	ElapsedUS float64 `json:"elapsed_us"`
	CPUUS     float64 `json:"cpu_us"`
	// RSSKB is resident memory now, PeakKB its highest value, HeapKB the
	// heap's live objects (order memory only), each in KiB.
	RSSKB  float64 `json:"rss_kb"`
	PeakKB float64 `json:"peak_kb"`
	HeapKB float64 `json:"heap_kb,omitempty"`
	// Values are the answers of a further order.
	Values map[string]float64 `json:"values,omitempty"`
}

// Serve answers orders until in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, p Program) error {
	enc := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		r := p.order(ctx, strings.Fields(lines.Text()))
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (p *Program) order(ctx context.Context, words []string) *Report {
	r := &Report{}
	start, cpu := time.Now(), CPU()
	err := p.obey(ctx, words, r)
	if err != nil {
		r.Error = err.Error()
	}
	r.ElapsedUS = micro(time.Since(start))
	r.CPUUS = micro(CPU() - cpu)
	r.RSSKB, r.PeakKB = Resident(os.Getpid())
	return r
}

func (p *Program) obey(ctx context.Context, words []string, r *Report) error {
	switch {
	case len(words) == 2 && words[0] == "serial":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		return p.serial(ctx, n, r)
	case len(words) == 3 && words[0] == "load":
		w, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		ms, err := strconv.Atoi(words[2])
		if err != nil {
			return err
		}
		return p.load(ctx, w, time.Duration(ms)*time.Millisecond, r)
	case len(words) == 1 && words[0] == "memory":
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		r.HeapKB = float64(m.HeapAlloc) / 1024
		return nil
	case len(words) >= 2 && words[0] == "do" && p.Do[words[1]] != nil:
		var err error
		r.Values, err = p.Do[words[1]](ctx, words[2:])
		return err
	}
	return fmt.Errorf("unknown order %q", strings.Join(words, " "))
}

func (p *Program) serial(ctx context.Context, n int, r *Report) error {
	for range n {
		start := time.Now()
		if err := p.Run(ctx); err != nil {
			return err
		}
		r.Walls = append(r.Walls, micro(time.Since(start)))
		r.Runs++
	}
	return nil
}

func (p *Program) load(ctx context.Context, workers int, d time.Duration, r *Report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var runs atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for range workers {
		wg.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := p.Run(ctx); err != nil {
					cancel(err)
					return
				}
				runs.Add(1)
			}
		})
	}
	wg.Wait()
	r.Runs = int(runs.Load())
	return context.Cause(ctx)
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// CPU is the user and system time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Resident gives VmRSS and VmHWM of a process in KiB, from /proc/PID/status; 0
// where there is none (see proc_pid_status(5)).
func Resident(pid int) (now, peak float64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "VmRSS:":
			now, _ = strconv.ParseFloat(f[1], 64)
		case "VmHWM:":
			peak, _ = strconv.ParseFloat(f[1], 64)
		}
	}
	return now, peak
}
