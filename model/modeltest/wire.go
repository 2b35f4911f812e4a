package modeltest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"agentd/message"
	"agentd/model"
)

// Wire is a stream format in pieces, for replies that no fixture has: how servers, gateways
// and networks deform them. All pieces are whole events, or whole lines.
type Wire struct {
	// Lines says that the format has a JSON value a line and not events.
	Lines bool
	// Begin is what comes ahead of the content.
	Begin string
	// Text is a text in pieces, Call a call "call_1" of "read" whose arguments come in
	// pieces; both are given as JSON strings. A format that sends arguments whole joins
	// the pieces, which are then part of one object.
	Text, Call func(pieces ...string) string
	// Empty are pieces with nothing in them, Unknown events and members that do not exist.
	Empty, Unknown string
	// KeepAlive is what comes while there is nothing to say.
	KeepAlive string
	// End ends a reply: 20 tokens of prompt, 7 of output.
	End string
	// NoEnd stands where End does, and has everything but what ends a reply.
	NoEnd string
	// Overloaded is an error in the middle of a stream.
	Overloaded string
	// Ends are ends with two reasons, length and the usual one, in both orders, and what
	// they come to. Nothing is read behind what ends a stream.
	Ends []Ending
	// Counts are ends that count tokens ahead of the end and behind it, and what of
	// that is read; Stop is not looked at.
	Counts []Ending
	// Overflow is the body of an error response of status 400.
	Overflow string
}

// Ending is an end of a stream and what it means.
type Ending struct {
	Name, Stream string
	Stop         message.StopReason
	// Prompt and Output are how many tokens were counted.
	Prompt, Output int64
}

// response is what comes back, without a network.
type response struct {
	status int
	header http.Header
	body   io.Reader
}

// RoundTrip implements http.RoundTripper: every request gets the response.
func (r *response) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	status := r.status
	if status == 0 {
		status = http.StatusOK
	}
	header := r.header
	if header == nil {
		header = http.Header{"Content-Type": {"text/event-stream"}}
	}
	return &http.Response{StatusCode: status, Header: header.Clone(), Body: io.NopCloser(r.body), Request: req}, nil
}

// receive has an adapter read a response.
func (h *Harness) receive(t *testing.T, r *response, emit func(model.StreamEvent)) (*message.Message, error) {
	t.Helper()
	p := h.New(t, Server{URL: "http://provider.invalid", Key: key, Client: &http.Client{Transport: r}})
	return p.Generate(t.Context(), h.ask(), emit)
}

// whole checks that a stream is a reply of this content.
func (h *Harness) whole(t *testing.T, body io.Reader, stop message.StopReason, want ...message.Block) *message.Message {
	t.Helper()
	var events recorder
	m, err := h.receive(t, &response{body: body}, events.add)
	if err != nil {
		t.Fatal(err)
	}
	events.check(t, m)
	same := func(a, b message.Block) bool {
		return a.Type == b.Type && a.Text == b.Text && a.ID == b.ID && a.Name == b.Name && string(a.Arguments) == string(b.Arguments)
	}
	if !slices.EqualFunc(m.Content, want, same) || m.StopReason != stop {
		t.Errorf("%s\nwant %s and\n%s", dump(m), stop, dump(want))
	}
	return m
}

// deformed reads what no provider documents and all of them, or what is between, have sent.
func deformed(t *testing.T, h Harness) {
	w := h.Wire
	hello := message.Text("Hello!")
	text := w.Text(`"Hel"`, `"lo!"`)

	t.Run("error event in the middle", func(t *testing.T) {
		seen := ""
		m, err := h.receive(t, &response{body: strings.NewReader(w.Begin + text + w.Overloaded + w.End)}, func(e model.StreamEvent) {
			if e.Type == model.StreamTextDelta {
				seen += e.Delta
			}
		})
		if e := failed(t, m, err, model.ClassOverloaded); e.Message == "" || e.Usage == nil || e.Usage.Prompt() <= 0 {
			t.Errorf("%+v, usage %+v", e, e.Usage)
		}
		if seen != hello.Text {
			t.Errorf("ahead of the error came %q", seen)
		}
	})
	t.Run("unknown events", func(t *testing.T) {
		h.whole(t, strings.NewReader(w.Unknown+w.Begin+w.Unknown+text+w.Unknown+w.End), message.StopEnd, hello)
	})
	t.Run("empty deltas", func(t *testing.T) {
		h.whole(t, strings.NewReader(w.Begin+w.Empty+text+w.Empty+w.End), message.StopEnd, hello)
		h.whole(t, strings.NewReader(w.Begin+w.Empty+w.End), message.StopEnd)
		h.whole(t, strings.NewReader(w.Begin+w.Text(`""`, `"Hel"`, `""`, `"lo!"`, `""`)+w.End), message.StopEnd, hello)
	})
	t.Run("no terminal marker", func(t *testing.T) {
		for _, end := range []string{w.NoEnd, ""} {
			m, err := h.receive(t, &response{body: strings.NewReader(w.Begin + text + end)}, nil)
			if e := failed(t, m, err, model.ClassTruncated); e.Usage == nil || e.Usage.Prompt() <= 0 {
				t.Errorf("usage %+v", e.Usage)
			}
		}
	})
	t.Run("two finish reasons", func(t *testing.T) {
		for _, end := range w.Ends {
			t.Run(end.Name, func(t *testing.T) { h.whole(t, strings.NewReader(w.Begin+text+end.Stream), end.Stop, hello) })
		}
	})
	t.Run("usage before and behind the end", func(t *testing.T) {
		for _, end := range w.Counts {
			t.Run(end.Name, func(t *testing.T) {
				m := h.whole(t, strings.NewReader(w.Begin+text+end.Stream), message.StopEnd, hello)
				if u := m.Usage; u.Prompt() != end.Prompt || u.Output != end.Output || u.TotalTokens != end.Prompt+end.Output {
					t.Errorf("%+v, want %d and %d", u, end.Prompt, end.Output)
				}
			})
		}
	})
	h.split(t)
	h.transported(t)
	h.notTheAPI(t)
}

// split: arguments that are cut where no cut should be are put together again.
func (h *Harness) split(t *testing.T) {
	w := h.Wire
	for name, tt := range map[string]struct {
		pieces []string
		want   string
	}{
		"an escape":            {[]string{`"{\"path\":\"a\\"`, `"nb\"}"`}, `{"path":"a\nb"}`},
		"an escaped character": {[]string{`"{\"path\":\"caf\\u0"`, `"0e9\"}"`}, `{"path":"caf\u00e9"}`},
		"a pair of escapes":    {[]string{`"{\"path\":\"\\ud83d"`, `"\\ude00\"}"`}, `{"path":"\ud83d\ude00"}`},
		"a name":               {[]string{`"{\"pa"`, `"th\":"`, `"\"x\""`, `"}"`}, `{"path":"x"}`},
		"after each character": {[]string{`"{"`, `"\""`, `"p"`, `"\""`, `":"`, `"1"`, `"}"`}, `{"p":1}`},
	} {
		t.Run("arguments split in "+name, func(t *testing.T) {
			m := h.whole(t, strings.NewReader(w.Begin+w.Call(tt.pieces...)+w.End), message.StopToolUse, message.Call("call_1", "read", []byte(tt.want)))
			if !sameJSON(m.Content[0].Arguments, tt.want) {
				t.Errorf("%s, want %s", m.Content[0].Arguments, tt.want)
			}
		})
	}
	t.Run("arguments split in a UTF-8 sequence", func(t *testing.T) {
		call := w.Call("\"{\\\"path\\\":\\\"\xf0\x9f\"", "\"\x98\x80\\\"}\"") // as servers do that stream tokens and not characters
		h.whole(t, strings.NewReader(w.Begin+call+w.End), message.StopToolUse, message.Call("call_1", "read", []byte(`{"path":"😀"}`)))
	})
	t.Run("text split in a character", func(t *testing.T) {
		text := w.Text("\"a\xf0\"", "\"\x9f\x98\"", "\"\x80\"", `"\ud83d"`, `"\ude00"`, "\"b\xc3\"") // the last is never whole
		h.whole(t, strings.NewReader(w.Begin+text+w.End), message.StopEnd, message.Text("a😀😀b"))
	})
}

// transported: what a network and what proxies make of a stream.
func (h *Harness) transported(t *testing.T) {
	w := h.Wire
	stream := w.Begin + w.Text(`"a😀"`, `"\ud83d\ude00é"`) + w.Call(`"{\"path\":\"w"`, `"ö\"}"`) + w.End
	want := []message.Block{message.Text("a😀😀é"), message.Call("call_1", "read", []byte(`{"path":"wö"}`))}
	t.Run("a byte at a time", func(t *testing.T) {
		h.whole(t, iotest.OneByteReader(strings.NewReader(stream)), message.StopToolUse, want...)
	})
	t.Run("CRLF and comments", func(t *testing.T) {
		between := ": a comment\n:\n"
		if w.Lines {
			between = "\n \t\n"
		}
		for _, end := range []string{"\r\n", "\n"} {
			h.whole(t, strings.NewReader(strings.ReplaceAll(between+strings.ReplaceAll(stream, "\n", "\n"+between), "\n", end)), message.StopToolUse, want...)
		}
		if w.Lines {
			return // a CR alone ends events only
		}
		h.whole(t, strings.NewReader(strings.ReplaceAll(stream, "\n", "\r")), message.StopToolUse, want...)
	})
	t.Run("a keep-alive every 60 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pieces := []string{w.Begin}
			for range 30 {
				pieces = append(pieces, w.KeepAlive)
			}
			began := time.Now()
			h.whole(t, &slow{pieces: append(pieces, stream[len(w.Begin):]), pause: time.Minute}, message.StopToolUse, want...)
			if took := time.Since(began); took < 30*time.Minute {
				t.Errorf("it took %v only", took)
			}
		})
	})
	t.Run("longer silence than is waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &response{body: &slow{pieces: []string{w.Begin, stream[len(w.Begin):]}, pause: 6 * time.Minute}}
			p := h.New(t, Server{URL: "http://provider.invalid", Key: key, Client: &http.Client{Transport: &obedient{r}}})
			m, err := p.Generate(t.Context(), h.ask(), nil)
			failed(t, m, err, model.ClassTimeout)
			<-time.After(10 * time.Minute) // the body ends, too
		})
	})
	t.Run("gzip that nobody asked for", func(t *testing.T) {
		header := http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}
		m, err := h.receive(t, &response{header: header, body: zipped(stream)}, nil)
		if err != nil || len(m.Content) != len(want) || m.Content[0].Text != want[0].Text {
			t.Errorf("%s, %v", dump(m), err)
		}
		half := zipped(stream)
		half.Truncate(half.Len() / 2)
		m, err = h.receive(t, &response{header: header, body: half}, nil)
		failed(t, m, err, model.ClassTruncated)
	})
}

// notTheAPI: answers that are no streams.
func (h *Harness) notTheAPI(t *testing.T) {
	json := http.Header{"Content-Type": {"application/json"}}
	t.Run("a gzip'd error body", func(t *testing.T) {
		header := http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
		m, err := h.receive(t, &response{status: http.StatusBadRequest, header: header, body: zipped(h.Wire.Overflow)}, nil)
		e := failed(t, m, err, model.ClassOverflow)
		if !strings.Contains(h.Wire.Overflow, e.Message) || e.Message == "" {
			t.Errorf("the message is %q", e.Message)
		}
		broken := zipped(h.Wire.Overflow)
		broken.Truncate(3)
		m, err = h.receive(t, &response{status: http.StatusServiceUnavailable, header: header, body: broken}, nil)
		failed(t, m, err, model.ClassOverloaded) // the status says as much
		m, err = h.receive(t, &response{status: http.StatusServiceUnavailable, header: header, body: strings.NewReader("not gzip at all")}, nil)
		if e := failed(t, m, err, model.ClassOverloaded); e.Message != "not gzip at all" {
			t.Errorf("the message is %q", e.Message)
		}
	})
	t.Run("an HTML error page", func(t *testing.T) {
		page := "<!DOCTYPE html><html><head><title>Bad\n Gateway &amp; more</title></head><body>" + strings.Repeat("<p>Sorry.</p>\n", 1000) + "</body></html>"
		html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
		for status, class := range map[int]model.Class{502: model.ClassServer, 503: model.ClassOverloaded, 403: model.ClassAuth, 200: model.ClassMalformed} {
			m, err := h.receive(t, &response{status: status, header: html, body: strings.NewReader(page)}, nil)
			if e := failed(t, m, err, class); len(e.Message) > 200 || !strings.Contains(e.Message, "a web page") || !strings.HasSuffix(e.Message, "Bad Gateway & more") {
				t.Errorf("%d: the message is %q", status, e.Message)
			}
		}
	})
	t.Run("200 with a JSON error body", func(t *testing.T) {
		m, err := h.receive(t, &response{header: json, body: strings.NewReader(h.Wire.Overflow)}, nil)
		failed(t, m, err, model.ClassOverflow)
	})
}

func zipped(text string) *bytes.Buffer {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return &b
}

// slow gives its pieces with a pause ahead of each but the first.
type slow struct {
	pieces []string
	pause  time.Duration
	wait   bool // ahead of what is read next
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	if s.wait {
		<-time.After(s.pause)
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; s.pieces[0] == "" {
		s.pieces, s.wait = s.pieces[1:], true
	} else {
		s.wait = false // the rest of the piece is there already
	}
	return n, nil
}

// obedient ends a response's body with the context of its request, as connections do.
type obedient struct{ next http.RoundTripper }

func (o *obedient) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := o.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, write := io.Pipe()
	from := res.Body
	go func() {
		_, err := io.Copy(write, from)
		_ = write.CloseWithError(err)
	}()
	go func() {
		<-req.Context().Done()
		_ = write.CloseWithError(req.Context().Err())
	}()
	res.Body = body
	return res, nil
}
