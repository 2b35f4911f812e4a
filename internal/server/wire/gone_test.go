package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
)

// leaver is a client that goes during a write, and whose producer notices first.
type leaver struct {
	http.ResponseWriter
	leave  func()
	ending <-chan struct{}
}

func (l leaver) Write(b []byte) (int, error) {
	l.leave()
	<-l.ending
	for range 100 {
		runtime.Gosched() // the producer's error is on its way
	}
	return len(b), nil
}

// A client that goes is no error of the stream, whoever notices it first.
func TestAClientThatGoesIsNoError(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		ending := make(chan struct{})
		st := NewStream(leaver{httptest.NewRecorder(), cancel, ending}, StreamConfig{})
		err := st.Run(ctx, func(ctx context.Context, out *Out) error {
			b, _ := out.Begin()
			out.End(append(b, "x"...))
			<-ctx.Done()
			close(ending)
			return ctx.Err()
		})
		if !errors.Is(err, ErrGone) {
			t.Fatalf("the stream ended with %v", err)
		}
	}
}
