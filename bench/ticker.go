package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// stampLen is the length of a piece of text: microseconds since 1970, and a space.
const stampLen = 17

// ticker is a model that says the time, streamed in OpenAI's form: so many pieces, so
// many a second, once GET /go has told it to begin. The simulator says the same to the
// same request, so it can not tell when it said it.
func ticker(ctx context.Context, args []string) error {
	var n [3]int // pieces, a second, requests
	for i := range n {
		var err error
		if len(args) != len(n) {
			return fmt.Errorf("ticker PIECES RATE REQUESTS")
		}
		if n[i], err = strconv.Atoi(args[i]); err != nil {
			return err
		}
	}
	begin, once := make(chan struct{}), sync.Once{}
	var began time.Time
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /go", func(http.ResponseWriter, *http.Request) {
		once.Do(func() { began = time.Now(); close(begin) })
	})
	mux.HandleFunc("GET /asked", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, asked.Load()) })
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		mine := asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		const head = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"tick","choices":[{"index":0,"delta":{`
		fmt.Fprint(w, head, `"role":"assistant","content":""},"finish_reason":null}]}`, "\n\n")
		_ = rc.Flush()
		select {
		case <-begin:
		case <-r.Context().Done():
			return
		}
		every := time.Second / time.Duration(n[1])
		// Not all at the same moment.
		next := began.Add(every * time.Duration(mine%int64(n[2])) / time.Duration(n[2]))
		buf := make([]byte, 0, 512)
		for range n[0] {
			if d := time.Until(next); d > 0 {
				time.Sleep(d)
			}
			next = next.Add(every)
			buf = append(append(buf[:0], head...), `"content":"`...)
			buf = append(strconv.AppendInt(buf, time.Now().UnixMicro(), 10), ` "},"finish_reason":null}]}`...)
			if _, err := w.Write(append(buf, "\n\n"...)); err != nil || rc.Flush() != nil {
				return
			}
		}
		fmt.Fprint(w, head, `},"finish_reason":"stop"}]}`, "\n\n",
			`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"tick","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`, "\n\ndata: [DONE]\n\n")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ticker listens on http://%s\n", l.Addr())
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	_ = s.Serve(l) // until it is told to end
	return nil
}
