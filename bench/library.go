package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"

	"agentd"
	"agentd/bench/worker"
	"agentd/event"
	"agentd/tool"
)

// library is agentd as a library, in a process of its own.
func library(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("library", flag.ContinueOnError)
	configs := f.String("configs", "", "configuration")
	data := f.String("data", ":memory:", "data folder")
	executor := f.String("engine", "", "who has the runs driven; empty is as the configuration says")
	profile := f.String("profile", worker.LoopModel, "profile of the runs")
	profiled := f.String("cpuprofile", "", "file for a profile of the processor time")
	allocated := f.String("memprofile", "", "file for a profile of what was allocated")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *allocated != "" {
		out, err := os.Create(*allocated)
		if err != nil {
			return err
		}
		defer out.Close()
		defer pprof.Lookup("allocs").WriteTo(out, 0)
	}
	if *profiled != "" {
		out, err := os.Create(*profiled)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	rt, err := agentd.Open(ctx, agentd.Config{Configs: *configs, Data: *data, Engine: *executor, Tools: []tool.Tool{echo{}, lookup{}}})
	if err != nil {
		return err
	}
	l := &lib{rt: rt, profile: *profile}
	err = worker.Serve(ctx, os.Stdin, os.Stdout, worker.Program{Run: l.run, Do: map[string]func(context.Context, []string) (map[string]float64, error){
		"suspend": l.suspend, "sessions": l.sessions, "converse": l.converse,
	}})
	return errors.Join(err, rt.Close())
}

type lib struct {
	rt      *agentd.Runtime
	profile string
}

// run starts a run and reads its events to the end, as a program that shows an
// answer while it grows would.
func (l *lib) run(ctx context.Context) error {
	_, err := l.follow(ctx)
	return err
}

func (l *lib) follow(ctx context.Context) (session string, err error) {
	r, err := l.rt.Start(ctx, agentd.StartRequest{Profile: l.profile, Input: agentd.Text(worker.User)})
	if err != nil {
		return "", err
	}
	n := 0
	last := event.Event{}
	for ev, err := range l.rt.Watch(ctx, r.ID, 0) {
		if err != nil {
			return "", err
		}
		if d, ok := ev.Data.(*event.Delta); ok {
			n += len(d.Text)
		}
		last = ev
	}
	if last.Type != event.RunCompleted || n == 0 {
		return "", fmt.Errorf("the run ended with %s and %d bytes of text", last.Type, n)
	}
	return r.SessionID, nil
}

// suspend starts runs that end up waiting for a person, and waits until they do.
func (l *lib) suspend(ctx context.Context, args []string) (map[string]float64, error) {
	return nil, l.times(args, func() error {
		r, err := l.rt.Start(ctx, agentd.StartRequest{Profile: l.profile, Input: agentd.Text(worker.User)})
		if err != nil {
			return err
		}
		for ev, err := range l.rt.Watch(ctx, r.ID, 0) {
			if err != nil || ev.Type == event.CheckpointRequired {
				return err
			}
		}
		return errors.New("the run ended and did not wait")
	})
}

// sessions makes sessions with one short run each.
func (l *lib) sessions(ctx context.Context, args []string) (map[string]float64, error) {
	return nil, l.times(args, func() error { return l.run(ctx) })
}

// times calls f as often as the argument says, 64 at a time.
func (l *lib) times(args []string, f func() error) error {
	n, err := strconv.Atoi(strings.Join(args, ""))
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 64 {
		wg.Go(func() {
			for k := i; k < n; k += 64 {
				if err := f(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// converse makes one run and says how many bytes of JSON its conversation has.
func (l *lib) converse(ctx context.Context, _ []string) (map[string]float64, error) {
	session, err := l.follow(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := l.rt.Entries(ctx, session)
	if err != nil {
		return nil, err
	}
	var n float64
	for _, e := range entries {
		b, err := json.Marshal(e.Message)
		if err != nil {
			return nil, err
		}
		n += float64(len(b))
	}
	return map[string]float64{"messages": float64(len(entries)), "bytes": n}, nil
}

// echo is the tool of the loop.
type echo struct{}

func (echo) Spec() tool.Spec {
	return tool.Spec{Name: worker.ToolName, Description: worker.ToolAbout, Schema: json.RawMessage(worker.ToolSchema), Effect: tool.Read}
}

func (echo) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	var a struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.Result{}, err
	}
	return tool.TextResult(a.Text), nil
}

// lookup answers with about a kilobyte of text that is different for each id.
type lookup struct{}

func (lookup) Spec() tool.Spec {
	return tool.Spec{Name: "lookup", Description: "Gives a record.", Effect: tool.Read,
		Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`)}
}

func (lookup) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	var b strings.Builder
	x := uint64(14695981039346656037)
	for _, c := range call.Args {
		x = (x ^ uint64(c)) * 1099511628211
	}
	for b.Len() < 1000 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "field %x is %d; ", x>>52, x>>32)
	}
	return tool.TextResult(b.String()), nil
}
