package llmwire

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"agentd/message"
	"agentd/model"
)

// Decoder turns what a stream carries into a reply.
type Decoder interface {
	// Chunk reads one piece of the stream, the data of an event or a line, and reports
	// whether it was the last.
	Chunk(data []byte) (done bool, failed *model.Error)
	// Complete reports whether the reply is whole, though reading on gave err.
	Complete(err error) bool
	// End closes the reply of a complete stream, and says if it was no answer.
	End() *model.Error
	// Document says what is wrong about a JSON document in place of a stream.
	Document(text []byte) *model.Error
}

// Decode reads the events of a response to their end, or its lines where the API streams
// lines. It reads into stream, which may be nil, and leaves there what the next call can
// use.
func (c *Call) Decode(d Decoder, res *http.Response, stream *[]byte, lines bool) *model.Error {
	c.body = res.Body
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		text, failed := c.Document()
		if failed != nil {
			return failed
		}
		return d.Document(text)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		text, failed := c.Document()
		if failed != nil {
			return failed
		}
		return &model.Error{Class: model.ClassMalformed, Message: string(text)} // [Hide] says what of it people need
	}
	var next func() ([]byte, error)
	if lines {
		r := c.Lines(*stream)
		defer func() { *stream = r.Kept() }()
		next = func() ([]byte, error) {
			line, whole, err := r.Next()
			if err == nil && !whole && !Valid(line) {
				err = io.ErrUnexpectedEOF // cut in the middle of a line
			}
			return line, err
		}
	} else {
		r := c.Events(res, *stream)
		defer func() { *stream = kept(r) }()
		next = func() ([]byte, error) {
			e, err := r.Next()
			return e.Data, err
		}
	}
	for {
		data, err := next()
		if err != nil {
			if !d.Complete(err) {
				return c.Fail(err)
			}
			return d.End()
		}
		done, failed := d.Chunk(data)
		if failed != nil {
			return failed
		}
		if !done {
			continue
		}
		if !d.Complete(io.EOF) {
			return c.Fail(io.EOF)
		}
		c.Finish()
		return d.End()
	}
}

// Spent completes the error of a call whose stream had begun: what it used, the
// provider's name of the request, how long to wait if the message says so.
func Spent(e *model.Error, requestID string, u *message.Usage) *model.Error {
	e.RequestID, e.Usage = requestID, u
	if e.Class != model.ClassCancelled && e.RetryAfter == 0 {
		e.RetryAfter = TextDelay(e.Message)
	}
	return e
}

// Hide cuts the message of an error to a length for people and takes the key out of it. Of
// a web page its title is left.
func Hide(e *model.Error, key string) *model.Error {
	if title, ok := webPage(e.Message); ok {
		e.Message = "the server answered with a web page and not as the API does: " + title
	}
	e.Message = Clip(Redact(e.Message, key))
	return e
}

// Outcome is what [model.Provider] returns of a call: the reply, or the error with the
// names of who was asked.
func Outcome(provider, id string, m *message.Message, e *model.Error) (*message.Message, error) {
	if e != nil {
		e.Provider, e.Model = provider, id
		return nil, e
	}
	return m, nil
}

// Malformed is the error of a piece of a stream that can not be read.
func Malformed(what string, data []byte) *model.Error {
	return &model.Error{Class: model.ClassMalformed, Message: fmt.Sprintf("%s: %.200q", what, data)}
}

// NotAStream is what comes of a JSON document in place of a stream: the error that it
// holds, which read reads, or that it is none.
func NotAStream(text []byte, read func(text []byte) *model.Error) *model.Error {
	if inner := text; json.Valid(text) {
		list := Array(text)
		if first, ok := list.Element(); ok { // Google wraps it
			inner = first
		}
		if !Null(Get(inner, "error")) {
			return read(text)
		}
	}
	return Malformed("the server answered with a JSON document and not with a stream", text)
}
