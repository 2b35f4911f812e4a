package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// crew is what a process of readers is told to do: start runs at the nodes in turn,
// read each so many times, half of the readers at either node, and then ask Go for the
// text to begin.
type crew struct {
	Nodes                 []string
	Runs, Readers, Pieces int
	Go                    string
}

// sighting is what the readers saw: times in milliseconds.
type sighting struct {
	P50, P90, P99, P999, Max float64
	Rate, Seconds, PerRead   float64
	Tail                     float64
	Events, Bytes            int64
}

// delays counts times in buckets that are a sixteenth of their size wide.
type delays struct {
	n   [64 * 16]atomic.Int64
	max atomic.Int64
}

func (d *delays) add(us int64) {
	us = max(us, 1)
	k := bits.Len64(uint64(us)) - 1
	sub := us << 4 >> k & 15
	d.n[k<<4|int(sub)].Add(1)
	for m := d.max.Load(); us > m && !d.max.CompareAndSwap(m, us); m = d.max.Load() {
	}
}

// at gives the upper end of the bucket below which a share of all times lie, in ms.
func (d *delays) at(share float64) float64 {
	all, seen := int64(0), int64(0)
	for i := range d.n {
		all += d.n[i].Load()
	}
	for i := range d.n {
		if seen += d.n[i].Load(); float64(seen) >= share*float64(all) {
			k := i >> 4
			return float64(int64(16+i&15+1)<<k>>4) / 1000
		}
	}
	return 0
}

// gang is the crew at work.
type gang struct {
	crew
	c       *http.Client
	delays  delays
	pieces  atomic.Int64
	reads   atomic.Int64
	events  atomic.Int64
	bytes   atomic.Int64
	first   atomic.Int64 // µs
	last    atomic.Int64
	arrived sync.WaitGroup
}

func readers(ctx context.Context) error {
	files()
	g := &gang{}
	if err := json.NewDecoder(os.Stdin).Decode(&g.crew); err != nil {
		return err
	}
	dial := &net.Dialer{}
	g.c = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, ReadBufferSize: 2048, WriteBufferSize: 512,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial.DialContext(ctx, network, addr)
			return &counting{c, &g.reads}, err
		}}}
	runs := make([]string, g.Runs)
	for i := range runs {
		var err error
		if runs[i], err = accept(ctx, g.c, g.Nodes[i%len(g.Nodes)], "tick"); err != nil {
			return err
		}
	}
	errs := make(chan error, g.Runs*g.Readers)
	seen := make([][]digest, g.Runs)
	var wg sync.WaitGroup
	gate := make(chan struct{}, 64) // not all of them knock at once
	for i := range runs {
		seen[i] = make([]digest, g.Readers)
		for k := range g.Readers {
			gate <- struct{}{}
			g.arrived.Add(1)
			arrived := sync.OnceFunc(func() { g.arrived.Done(); <-gate })
			wg.Go(func() {
				d, err := g.read(ctx, g.Nodes[(i+k)%len(g.Nodes)], runs[i], arrived)
				seen[i][k] = d
				if err != nil {
					errs <- fmt.Errorf("reader %d of %s: %w", k, runs[i], err)
				}
				arrived()
			})
		}
	}
	g.arrived.Wait()
	g.reads.Store(0)
	if err := json.NewEncoder(os.Stdout).Encode(sighting{}); err != nil {
		return err
	}
	if _, err := get(ctx, g.c, g.Go); err != nil {
		return err
	}
	wg.Wait()
	end := time.Now().UnixMicro()
	close(errs)
	var all []error
	for err := range errs {
		if all = append(all, err); len(all) == 5 {
			break
		}
	}
	for i, id := range runs {
		want, err := g.stored(ctx, id)
		if err != nil {
			return err
		}
		for k, d := range seen[i] {
			if d != want && len(all) < 5 {
				all = append(all, fmt.Errorf("reader %d of %s saw %+v, stored is %+v", k, id, d, want))
			}
		}
	}
	if len(all) > 0 {
		return errors.Join(all...)
	}
	took := float64(g.last.Load()-g.first.Load()) / 1e6
	return json.NewEncoder(os.Stdout).Encode(sighting{P50: g.delays.at(0.5), P90: g.delays.at(0.9), P99: g.delays.at(0.99), P999: g.delays.at(0.999), Max: float64(g.delays.max.Load()) / 1000,
		Rate: float64(g.pieces.Load()) / took, Seconds: took, PerRead: float64(g.pieces.Load()) / float64(g.reads.Load()), Tail: float64(end-g.last.Load()) / 1e6, Events: g.events.Load(), Bytes: g.bytes.Load()})
}

// counting counts reads of a connection.
type counting struct {
	net.Conn
	n *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Read(b)
}

// digest is what a reader saw of a run: how many events besides deltas, a hash of their
// numbers and types, the length of the text and a hash of it.
type digest struct {
	Events      int
	Which, Text uint64
	Bytes       int
}

// read reads the events of a run to the end.
func (g *gang) read(ctx context.Context, base, id string, arrived func()) (d digest, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/runs/"+id+"/events", nil)
	if err != nil {
		return d, err
	}
	res, err := g.c.Do(req)
	if err != nil {
		return d, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return d, errors.New(res.Status)
	}
	which, text := fnv.New64a(), fnv.New64a()
	lines := bufio.NewReaderSize(res.Body, 1024)
	var long, seq, typ, cut []byte // cut is the beginning of a piece
	var last int64
	for {
		line, err := lines.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			long = append(long, line...)
			continue
		}
		if len(long) > 0 {
			long = append(long, line...)
			line, long = long, long[:0]
		}
		if err == io.EOF {
			d.Which, d.Text = which.Sum64(), text.Sum64()
			if string(typ) != "run_completed" || d.Bytes != g.Pieces*stampLen {
				err = fmt.Errorf("it ended with %s after %d bytes", typ, d.Bytes)
			} else {
				err = nil
			}
			return d, err
		}
		if err != nil {
			return d, err
		}
		switch {
		case bytes.HasPrefix(line, []byte("id: ")):
			seq = append(seq[:0], line[4:]...)
			n, err := strconv.ParseInt(string(line[4:len(line)-1]), 10, 64)
			if err != nil || n <= last {
				return d, fmt.Errorf("event %s after %d", line, last)
			}
			last = n
		case bytes.HasPrefix(line, []byte("event: ")):
			typ = append(typ[:0], line[7:len(line)-1]...)
			if string(typ) == "step_started" {
				arrived()
			}
		case bytes.HasPrefix(line, []byte("data: ")):
			g.events.Add(1)
			if string(typ) != "text_delta" {
				d.Events++
				which.Write(seq)
				which.Write(typ)
				if string(typ) == "final_text" {
					if said := said(line); hash(said) != text.Sum64() {
						return d, fmt.Errorf("the text is of %d bytes, what came of it is of %d and differs", len(said), d.Bytes)
					}
				}
				continue
			}
			said := said(line)
			d.Bytes += len(said)
			text.Write(said)
			cut = g.stamps(append(cut, said...))
		}
	}
}

func hash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// said is the text of an event. It has nothing that JSON escapes.
func said(line []byte) []byte {
	_, rest, _ := bytes.Cut(line, []byte(`"text":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return text
}

// stamps takes the times out of a text and gives what is left.
func (g *gang) stamps(text []byte) []byte {
	now, whole := time.Now().UnixMicro(), text[:0]
	g.bytes.Add(int64(len(text) / stampLen * stampLen))
	for ; len(text) >= stampLen; text = text[stampLen:] {
		at := int64(0)
		for _, c := range text[:stampLen-1] {
			at = at*10 + int64(c-'0')
		}
		g.delays.add(now - at)
		g.pieces.Add(1)
		g.first.CompareAndSwap(0, at)
		for m := g.last.Load(); at > m && !g.last.CompareAndSwap(m, at); m = g.last.Load() {
		}
	}
	return append(whole, text...)
}

// stored is what the store has of a run.
func (g *gang) stored(ctx context.Context, id string) (d digest, err error) {
	raw, err := get(ctx, g.c, g.Nodes[0]+"/runs/"+id+"/events?stream=false")
	if err != nil {
		return d, err
	}
	var page struct {
		Events []struct {
			Seq  int64
			Type string
			Data struct{ Text string }
		}
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return d, err
	}
	which, text := fnv.New64a(), fnv.New64a()
	for _, ev := range page.Events {
		if ev.Type == "text_delta" {
			d.Bytes += len(ev.Data.Text)
			io.WriteString(text, ev.Data.Text)
			continue
		}
		d.Events++
		fmt.Fprintf(which, "%d\n%s", ev.Seq, ev.Type)
	}
	d.Which, d.Text = which.Sum64(), text.Sum64()
	return d, nil
}
