package mcp

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A server that was down is reached again through several attempts, however long
// the manager would have rested between them.
func TestReachOutlastsASlowStart(t *testing.T) {
	f := newFront(t, handlerOf(realServer(t), nil))
	var refused atomic.Int32
	f.intercept(func(w http.ResponseWriter, _ *http.Request) {
		refused.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	m := manage(t, map[string]ServerConfig{"srv": {Transport: "http", URL: f.URL + "/?key=hush", Protocol: protocolLegacy, Timeouts: Timeouts{Connect: patience}}},
		&Options{MinPause: 10 * time.Millisecond, MaxPause: time.Hour})
	_, problems := m.Tools(background(t), m.Names())
	if len(problems) != 1 || problems[0].Stale || strings.Contains(problems[0].Err.Error(), "hush") {
		t.Fatalf("problems: %+v", problems)
	}
	reached := make(chan struct{})
	go func() { m.Reach(background(t), m.Names()); close(reached) }()
	before := refused.Load()
	eventually(t, "some attempts", func() bool { return refused.Load() >= before+3 })
	select {
	case <-reached:
		t.Fatal("it gave up")
	default:
	}
	f.intercept(nil)
	<-reached
	if tools := toolsOf(t, m); len(tools) != 1 {
		t.Errorf("tools: %v", tools)
	}
	m.Reach(background(t), []string{"srv", "nobody"}) // what is there, or unknown, does not hold up
}

// What can not be reached holds up no longer than its connect timeout, and a caller
// who gives up not at all.
func TestReachIsBounded(t *testing.T) {
	f := newFront(t, http.NotFoundHandler())
	for name, bound := range map[string]struct{ connect, caller time.Duration }{"its own": {100 * time.Millisecond, patience}, "the caller's": {patience, 100 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			m := manage(t, map[string]ServerConfig{"srv": {Transport: "http", URL: f.URL, Protocol: protocolLegacy, Timeouts: Timeouts{Connect: bound.connect}}}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), bound.caller)
			defer cancel()
			began := time.Now()
			m.Reach(ctx, m.Names())
			if d := time.Since(began); d < 90*time.Millisecond || d > patience/2 {
				t.Errorf("it took %v", d)
			}
		})
	}
}
