package model

import (
	"context"
	"iter"
	"sync"

	"agentd/message"
)

// StreamType names a stream event.
type StreamType string

// The twelve stream events. Adapters emit the first ten; done and error end an
// [EventStream].
const (
	StreamStart         StreamType = "start"
	StreamTextStart     StreamType = "text_start"
	StreamTextDelta     StreamType = "text_delta"
	StreamTextEnd       StreamType = "text_end"
	StreamThinkingStart StreamType = "thinking_start"
	StreamThinkingDelta StreamType = "thinking_delta"
	StreamThinkingEnd   StreamType = "thinking_end"
	StreamToolStart     StreamType = "toolcall_start"
	StreamToolDelta     StreamType = "toolcall_delta"
	StreamToolEnd       StreamType = "toolcall_end"
	StreamDone          StreamType = "done"
	StreamError         StreamType = "error"
)

// Ahead of these two more may come, from calls that are held back so that not too
// many run at the same time: nothing comes from the model between them.
const (
	StreamWaiting  StreamType = "waiting"
	StreamAdmitted StreamType = "admitted"
)

// StreamEvent is one piece of a streaming reply.
type StreamEvent struct {
	Type StreamType
	// Index is the content block that the event is about.
	Index int
	// Delta is the new text, thinking or piece of argument JSON.
	Delta string
	// Content is the whole text of the block, in *_end.
	Content string
	// ToolCall is the block so far (name and id in toolcall_start), complete
	// in toolcall_end.
	ToolCall *message.Block
	// Partial is the message so far. It is the adapter's own and only valid
	// during the call of emit.
	Partial *message.Message
	// Message and Reason are set in done and error; Err in error.
	Message *message.Message
	Reason  message.StopReason
	Err     error
}

// EventStream is a reply as a sequence that can be read while it grows, and a
// result that can be waited for. The queue is unbounded: the reader never slows
// the provider.
type EventStream struct {
	mu     sync.Mutex
	queue  []StreamEvent
	wake   chan struct{}
	ended  bool
	done   chan struct{}
	result *message.Message
	err    error
}

// Stream starts a call and returns its stream. It never fails: a failure is the
// stream's error event.
func Stream(ctx context.Context, p Provider, req *Request) *EventStream {
	s := &EventStream{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		m, err := p.Generate(ctx, req, func(e StreamEvent) {
			e.Partial = clonePartial(e.Partial)
			s.push(e)
		})
		if err != nil {
			e := AsError(ctx, "", req.Model, err)
			reason := message.StopError
			if e.Class == ClassCancelled {
				reason = message.StopAborted
			}
			failed := &message.Message{Role: message.RoleAssistant, StopReason: reason, ErrorMessage: e.Error()}
			s.finish(StreamEvent{Type: StreamError, Reason: reason, Message: failed, Err: err})
			return
		}
		s.finish(StreamEvent{Type: StreamDone, Reason: m.StopReason, Message: m})
	}()
	return s
}

func clonePartial(m *message.Message) *message.Message {
	if m == nil {
		return nil
	}
	c := *m
	c.Content = append([]message.Block(nil), m.Content...)
	return &c
}

func (s *EventStream) push(e StreamEvent) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *EventStream) finish(e StreamEvent) {
	s.mu.Lock()
	s.ended, s.result, s.err = true, e.Message, e.Err
	s.mu.Unlock()
	s.push(e)
	close(s.done)
}

// Events yields the events in order and ends after done or error. It may be
// ranged over once.
func (s *EventStream) Events() iter.Seq[StreamEvent] {
	return func(yield func(StreamEvent) bool) {
		for {
			s.mu.Lock()
			batch, ended := s.queue, s.ended
			s.queue = nil
			s.mu.Unlock()
			for _, e := range batch {
				if !yield(e) || e.Type == StreamDone || e.Type == StreamError {
					return
				}
			}
			if len(batch) == 0 && ended {
				select {
				case <-s.done:
					s.mu.Lock()
					empty := len(s.queue) == 0
					s.mu.Unlock()
					if empty {
						return
					}
					continue
				case <-s.wake:
					continue
				}
			}
			if len(batch) == 0 {
				<-s.wake
			}
		}
	}
}

// Result waits for the end and returns the message, or the error.
func (s *EventStream) Result() (*message.Message, error) {
	<-s.done
	if s.err != nil {
		return nil, s.err
	}
	return s.result, nil
}

// Complete generates a reply without streaming it.
func Complete(ctx context.Context, p Provider, req *Request) (*message.Message, error) {
	return p.Generate(ctx, req, nil)
}
