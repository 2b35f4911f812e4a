package server

import (
	"encoding/json"
	"net/http"

	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// answerBody is a person's answer.
type answerBody struct {
	Decision string          `json:"decision"`
	Args     json.RawMessage `json:"args"`
	Answer   json.RawMessage `json:"answer"`
	Reason   string          `json:"reason"`
	Remember bool            `json:"remember"`
	// SessionMode is the engine's to check.
	SessionMode string `json:"session_mode"`
}

// runAnswerBody also says which interrupt of the run is meant.
type runAnswerBody struct {
	InterruptID string          `json:"interrupt_id"`
	Decision    string          `json:"decision"`
	Args        json.RawMessage `json:"args"`
	Answer      json.RawMessage `json:"answer"`
	Reason      string          `json:"reason"`
	Remember    bool            `json:"remember"`
	SessionMode string          `json:"session_mode"`
}

func (b *answerBody) request(r *http.Request) (engine.AnswerRequest, error) {
	req := engine.AnswerRequest{Tenant: tenant(r), Decision: b.Decision, Args: given(b.Args), Answer: given(b.Answer), Reason: b.Reason, By: by(r), Remember: b.Remember, SessionMode: b.SessionMode}
	if err := oneOf("decision", b.Decision, "approve", "reject", "answer", "retry", "skip", "done"); err != nil {
		return req, err
	}
	if err := object("args", b.Args); err != nil {
		return req, err
	}
	if b.Decision == "" && req.Answer == nil {
		return req, wire.Invalid("decision", "give a decision, or an answer")
	}
	return req, nil
}

func (s *Server) answerRun(w http.ResponseWriter, r *http.Request) error {
	var b runAnswerBody
	if err := s.read(w, r, &b); err != nil {
		return err
	}
	a := answerBody{b.Decision, b.Args, b.Answer, b.Reason, b.Remember, b.SessionMode}
	req, err := a.request(r)
	if err != nil {
		return err
	}
	req.Run, req.Interrupt = r.PathValue("id"), b.InterruptID
	return s.answer(w, r, req)
}

func (s *Server) answerInterrupt(w http.ResponseWriter, r *http.Request) error {
	var b answerBody
	if err := s.read(w, r, &b); err != nil {
		return err
	}
	req, err := b.request(r)
	if err != nil {
		return err
	}
	req.Interrupt = r.PathValue("id")
	return s.answer(w, r, req)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, req engine.AnswerRequest) error {
	view, err := s.engine.Answer(r.Context(), req)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, view)
	return nil
}

func (s *Server) listInterrupts(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "status", "run_id", "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	if err := oneOf("status", q.Get("status"), "open", "answered", "expired", "cancelled"); err != nil {
		return err
	}
	views, cursor, err := s.engine.Interrupts(r.Context(), tenant(r), engine.InterruptFilter{Status: q.Get("status"), RunID: q.Get("run_id"), Cursor: q.Get("cursor"), Limit: limit})
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Interrupts []*engine.InterruptView `json:"interrupts"`
		Cursor     string                  `json:"cursor,omitempty"`
	}{list(views), cursor})
	return nil
}

func (s *Server) getInterrupt(w http.ResponseWriter, r *http.Request) error {
	view, err := s.engine.Interrupt(r.Context(), ref(r))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, view)
	return nil
}
