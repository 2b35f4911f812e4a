package modeltest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentd/fault"
	"agentd/model"
)

func failures(t *testing.T, h Harness) {
	for _, c := range h.Failures {
		t.Run(c.Name, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for k, v := range c.Header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.Status)
				_, _ = w.Write([]byte(c.Body))
			})
			m, err := h.adapter(t, f).Generate(t.Context(), h.ask(), nil)
			e := failed(t, m, err, c.Class)
			if e.Status != c.Status || e.RetryAfter != c.Retry {
				t.Errorf("status %d, retry after %v; want %d, %v", e.Status, e.RetryAfter, c.Status, c.Retry)
			}
			if n := len(f.requests()); n != 1 {
				t.Errorf("%d requests; an adapter must not retry", n)
			}
		})
	}
}

func notAStream(t *testing.T, h Harness) {
	for body, class := range map[string]model.Class{
		`{"id":"x","choices":[],"content":[]}`:                                     model.ClassMalformed,
		`{"error":{"message":"rate limit reached","type":"rate_limit_error"}}`:     model.ClassRateLimited,
		`{"error":{"message":"upstream is overloaded","type":"overloaded_error"}}`: model.ClassOverloaded,
		`nonsense`: model.ClassMalformed,
	} {
		f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = w.Write([]byte(body))
		})
		m, err := h.adapter(t, f).Generate(t.Context(), h.ask(), nil)
		failed(t, m, err, class)
	}
}

// cancel ends the context at each stage of a call.
func cancel(t *testing.T, h Harness) {
	whole := h.fixture(t, "text")
	stages := map[string]http.HandlerFunc{
		"before the response": func(w http.ResponseWriter, r *http.Request) {},
		"in the stream": func(w http.ResponseWriter, r *http.Request) {
			stream(whole[:len(whole)/2])(w, r)
			_ = http.NewResponseController(w).Flush()
		},
	}
	for name, begin := range stages {
		t.Run(name, func(t *testing.T) {
			reached, gone := make(chan struct{}), make(chan struct{})
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				begin(w, r)
				close(reached)
				<-r.Context().Done() // the adapter has let go of the connection
				close(gone)
			})
			ctx, stop := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() {
				_, err := h.adapter(t, f).Generate(ctx, h.ask(), nil)
				result <- err
			}()
			<-reached
			stop()
			deadline := time.After(time.Minute) // far more than it takes, on any machine
			select {
			case err := <-result:
				failed(t, nil, err, model.ClassCancelled)
			case <-deadline:
				t.Fatal("a cancelled call is still running after a minute")
			}
			select {
			case <-gone:
			case <-deadline:
				t.Fatal("a cancelled call still holds its connection after a minute")
			}
		})
	}
	t.Run("before the call", func(t *testing.T) {
		f := serve(t, stream(whole))
		ctx, stop := context.WithCancel(t.Context())
		stop()
		m, err := h.adapter(t, f).Generate(ctx, h.ask(), nil)
		failed(t, m, err, model.ClassCancelled)
	})
	t.Run("in the credential", func(t *testing.T) {
		f := serve(t, stream(whole))
		ctx, stop := context.WithCancel(t.Context())
		p := h.New(t, Server{URL: f.URL, Key: func(ctx context.Context) (string, error) {
			stop()
			<-ctx.Done()
			return "", ctx.Err()
		}})
		m, err := p.Generate(ctx, h.ask(), nil)
		failed(t, m, err, model.ClassCancelled)
	})
}

// silence: a provider that says nothing for too long, before and in a stream.
func silence(t *testing.T, h Harness) {
	whole := h.fixture(t, "text")
	for _, n := range []int{0, len(whole) / 2} {
		f := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n > 0 {
				stream(whole[:n])(w, r)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})
		p := h.New(t, Server{URL: f.URL, Key: key, Idle: 30 * time.Millisecond})
		m, err := p.Generate(t.Context(), h.ask(), nil)
		failed(t, m, err, model.ClassTimeout)
	}
}

func noConnection(t *testing.T, h Harness) {
	f := serve(t, stream(nil))
	p := h.adapter(t, f)
	f.Close()
	m, err := p.Generate(t.Context(), h.ask(), nil)
	e := failed(t, m, err, model.ClassConnection)
	if strings.Contains(e.Error(), f.URL) {
		t.Errorf("the error repeats the URL, which can hold a secret: %v", e)
	}
}

func credentials(t *testing.T, h Harness) {
	t.Run("asked for each request", func(t *testing.T) {
		f := serve(t, stream(h.fixture(t, "text")))
		n := 0
		p := h.New(t, Server{URL: f.URL, Key: func(context.Context) (string, error) {
			n++
			return fmt.Sprint(Key, n), nil
		}})
		for i := 1; i <= 2; i++ {
			if _, err := p.Generate(t.Context(), h.ask(), nil); err != nil {
				t.Fatal(err)
			}
			if got := h.Key(f.heads[i-1]); got != fmt.Sprint(Key, i) {
				t.Errorf("request %d has key %q", i, got)
			}
		}
		for _, verb := range []string{"%v", "%+v", "%s", "%#v"} {
			if s := fmt.Sprintf(verb, p); strings.Contains(s, Key) {
				t.Errorf("%s shows the key", verb)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		f := serve(t, stream(h.fixture(t, "text")))
		if _, err := h.New(t, Server{URL: f.URL}).Generate(t.Context(), h.ask(), nil); err != nil {
			t.Fatal(err)
		}
		if got := h.Key(f.heads[0]); got != "" {
			t.Errorf("a key was sent: %q", got)
		}
	})
	t.Run("not to be had", func(t *testing.T) {
		f := serve(t, stream(h.fixture(t, "text")))
		gone := errors.New("the vault is sealed")
		p := h.New(t, Server{URL: f.URL, Key: func(context.Context) (string, error) { return "", gone }})
		m, err := p.Generate(t.Context(), h.ask(), nil)
		if e := failed(t, m, err, model.ClassAuth); !errors.Is(e, gone) {
			t.Errorf("the cause is lost: %v", err)
		}
		p = h.New(t, Server{URL: f.URL, Key: func(context.Context) (string, error) {
			return "", &fault.Error{Kind: fault.Unavailable, Err: gone}
		}})
		m, err = p.Generate(t.Context(), h.ask(), nil)
		failed(t, m, err, model.ClassConnection) // it may be there again soon
		if len(f.requests()) != 0 {
			t.Error("a request was sent without the key")
		}
	})
	t.Run("never shown", func(t *testing.T) {
		for _, status := range []int{401, 500, 200} {
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"type":"error","error":{"type":"x","message":"bad key %s"}}`, h.Key(r.Header))
			})
			_, err := h.adapter(t, f).Generate(t.Context(), h.ask(), nil)
			for _, verb := range []string{"%v", "%+v", "%#v"} {
				for e := err; e != nil; e = errors.Unwrap(e) {
					if s := fmt.Sprintf(verb, e); strings.Contains(s, Key) {
						t.Errorf("%d: %s shows the key: %s", status, verb, s)
					}
				}
			}
			if err == nil || !strings.Contains(err.Error(), "[redacted]") {
				t.Errorf("%d: %v", status, err)
			}
		}
	})
	t.Run("not sent elsewhere", func(t *testing.T) {
		other := serve(t, stream(h.fixture(t, "text")))
		f := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+h.Path, http.StatusTemporaryRedirect)
		})
		m, err := h.adapter(t, f).Generate(t.Context(), h.ask(), nil)
		failed(t, m, err, model.ClassInvalid)
		if len(other.requests()) != 0 {
			t.Error("a redirect was followed")
		}
	})
}

// reuse: calls one after the other share a connection, because a handshake
// costs more than everything the adapter does.
func reuse(t *testing.T, h Harness) {
	remotes := map[string]bool{}
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr] = true
		stream(h.fixture(t, "text"))(w, r)
	})
	p := h.adapter(t, f)
	for range 5 {
		if _, err := p.Generate(t.Context(), h.ask(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(remotes) != 1 {
		t.Errorf("%d connections for 5 calls", len(remotes))
	}
}
