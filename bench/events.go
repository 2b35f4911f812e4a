package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"agentd/bench/worker"
)

// ticks are the load of the part events: so many runs whose models say so many pieces
// of text a second for a while, and so many readers of each.
type ticks struct {
	Runs, Rate, Readers int
	Seconds             float64
}

func (t ticks) pieces() int { return int(t.Seconds * float64(t.Rate)) }

// events is readers at nodes that do not drive what they read: two servers without
// workers and a worker on the database that AGENTD_STORE names, a model that says the
// time again and again, and readers in a process of their own.
func (b *bench) events(ctx context.Context) error {
	store := os.Getenv("AGENTD_STORE")
	if store == "" {
		fmt.Fprintln(os.Stderr, "bench: AGENTD_STORE names no database: left out")
		return nil
	}
	files()
	t := b.ticks
	model, err := helper(ctx, "ticker", fmt.Sprint(t.pieces()), fmt.Sprint(t.Rate), fmt.Sprint(t.Runs))
	if err != nil {
		return err
	}
	defer model.stop()
	configs, err := b.configs(model.url, "tick")
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("limits: {max_concurrent_runs: %d}\n%s", t.Runs, b.settings)
	if err := os.WriteFile(filepath.Join(configs, "agentd.yaml"), []byte(settings), 0o600); err != nil {
		return err
	}
	var nodes []*server
	for _, args := range [][]string{{"serve", "--no-worker"}, {"serve", "--no-worker"}, {"worker"}} {
		dir, err := b.folder("data")
		if err != nil {
			return err
		}
		n, err := listen(ctx, dir, b.agentd, append(args, "--addr", "127.0.0.1:0", "--configs", configs, "--store", store)...)
		if err != nil {
			return err
		}
		defer n.stop()
		nodes = append(nodes, n)
	}
	return b.follow(ctx, t, model, nodes)
}

// follow has the readers do their work and says what that was.
func (b *bench) follow(ctx context.Context, t ticks, model *server, nodes []*server) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	order, err := json.Marshal(crew{Nodes: []string{nodes[0].url, nodes[1].url}, Runs: t.Runs, Readers: t.Readers, Pieces: t.pieces(), Go: model.url + "/go"})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, exe, "readers")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(order), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	dec := json.NewDecoder(out)
	var ready, done sighting
	if err := dec.Decode(&ready); err != nil {
		return fmt.Errorf("the readers: %w", err)
	}
	var idle []float64
	usage := func() (all []float64) {
		for _, n := range append(nodes, model, &server{cmd: cmd}) {
			c, err := n.cpu()
			if err != nil {
				c = 0
			}
			all = append(all, c)
		}
		return all
	}
	for _, n := range nodes {
		now, _ := worker.Resident(n.cmd.Process.Pid)
		idle = append(idle, now/1024)
	}
	start, before := time.Now(), usage()
	stood := make([]float64, len(nodes))
	for i, n := range nodes {
		stood[i] = queued(n)
	}
	// What ends at the end is not part of the stream.
	time.Sleep(time.Duration(t.Seconds*float64(time.Second)) - time.Second)
	after, took := usage(), time.Since(start)
	for i, n := range nodes {
		stood[i] = (queued(n) - stood[i]) / took.Seconds()
	}
	load := loadAverage()
	if err := dec.Decode(&done); err != nil {
		return fmt.Errorf("the readers: %w", err)
	}
	end := usage()
	if err := cmd.Wait(); err != nil {
		return err
	}
	all := end[0] + end[1] - before[0] - before[1]
	what := fmt.Sprintf("%d SSE clients at two nodes, %d runs driven at a third one, %d pieces of text a second", t.Runs*t.Readers, t.Runs, t.Runs*t.Rate)
	b.note(what+": from the model's socket to the client", "p50 %s ms, p90 %s, p99 %s, p99.9 %s, longest %s", number(done.P50), number(done.P90), number(done.P99), number(done.P999), number(done.Max))
	b.note("delivered", "%s pieces/s to clients, said in %s s; %s a read; every one of %d events and of %d bytes of text once, in order, as stored",
		number(done.Rate), number(done.Seconds), number(done.PerRead), done.Events, done.Bytes)
	b.note("processor time of the API nodes for a piece and client", "%s µs", number(all/(done.Rate*done.Seconds)))
	for i, name := range []string{"first API node", "second API node", "worker"} {
		now, peak := worker.Resident(nodes[i].cmd.Process.Pid)
		b.note(name, "%s MB with all clients, %s MB at the end, peak %s MB; %s of a processor, and %s threads at a time waited for one", number(idle[i]), number(now/1024), number(peak/1024), number((after[i]-before[i])/1e6/took.Seconds()), number(stood[i]))
	}
	b.note("the model, the clients", "%s and %s of a processor; load of the machine %s", number((after[3]-before[3])/1e6/took.Seconds()), number((after[4]-before[4])/1e6/took.Seconds()), load)
	b.note("from the end of the last text until the last client had everything", "%s s", number(done.Tail))
	return nil
}

// queued is how long the threads of a process were ready to run and did not, in seconds:
// on a machine that others use, too, it says what a delay is made of.
func queued(s *server) (sum float64) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for _, t := range tasks {
		var ran, waited float64
		raw, err := os.ReadFile(t)
		if err != nil {
			continue // it has ended
		}
		if _, err := fmt.Sscan(string(raw), &ran, &waited); err == nil {
			sum += waited / 1e9
		}
	}
	return sum
}

// helper starts this program in a role that listens.
func helper(ctx context.Context, args ...string) (*server, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return listen(ctx, "", exe, args...)
}

// get makes a request and gives the body.
func get(ctx context.Context, c *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, res.Status, raw)
	}
	return raw, err
}
