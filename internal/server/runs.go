package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server/wire"
	"agentd/message"
)

// Limits of lists.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// startBody is the body of POST /runs.
type startBody struct {
	Profile   string          `json:"profile"`
	Input     json.RawMessage `json:"input"`
	SessionID string          `json:"session_id"`
	From      string          `json:"from"`
	Mode      string          `json:"mode"`
	// SessionMode is the engine's to check.
	SessionMode string          `json:"session_mode"`
	WhenBusy    string          `json:"when_busy"`
	Context     json.RawMessage `json:"context"`
	// Page and References are the engine's to check.
	Page       json.RawMessage   `json:"page"`
	References []json.RawMessage `json:"references"`
	// ContextBlocks are, too.
	ContextBlocks []contextBlock  `json:"context_blocks"`
	Budget        *budget         `json:"budget"`
	Metadata      json.RawMessage `json:"metadata"`
	// User is who the run is for, as the client knows them.
	User string `json:"user"`
}

// contextBlock is what else the model is to know.
type contextBlock struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// budget narrows a profile's limits. Zero changes nothing.
type budget struct {
	MaxSteps          int `json:"max_steps"`
	MaxToolCalls      int `json:"max_tool_calls"`
	MaxRunTimeSeconds int `json:"max_run_time_seconds"`
	MaxOutputTokens   int `json:"max_output_tokens"`
	// MaxCostUSD is a decimal number, read exactly.
	MaxCostUSD json.Number `json:"max_cost_usd"`
	MaxTokens  int         `json:"max_tokens"`
}

// limits are the members of a budget. All of them are enforced.
func limits() []string {
	return []string{"max_steps", "max_tool_calls", "max_run_time_seconds", "max_output_tokens", "max_cost_usd", "max_tokens"}
}

// notALimit finds a member of the budget that nothing enforces: whoever sent it
// must not believe that it holds.
func notALimit(raw []byte) error {
	var b struct {
		Budget map[string]json.RawMessage `json:"budget"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(b.Budget)) {
		if !slices.Contains(limits(), name) {
			return &fault.Error{Kind: fault.Invalid, Field: "budget." + wire.Clip(name, 60), Err: errors.New("unknown limit: it would not be enforced"),
				Hint: "The limits are: " + strings.Join(limits(), ", ") + "."}
		}
	}
	return nil
}

// decodeStart reads the body of POST /runs.
func decodeStart(raw []byte) (engine.StartRequest, error) {
	var b startBody
	var req engine.StartRequest
	err := wire.Decode(raw, &b)
	if err != nil || b.Budget != nil {
		err = cmp.Or(notALimit(raw), err)
	}
	if err != nil {
		return req, err
	}
	input, err := decodeInput(b.Input)
	if err != nil {
		return req, err
	}
	if err := oneOf("mode", b.Mode, engine.Interactive, engine.Autonomous, engine.ModeAsk, engine.ModePlan, engine.ModeEdit); err != nil {
		return req, err
	}
	if err := oneOf("session_mode", b.SessionMode, engine.ModeAsk, engine.ModePlan, engine.ModeEdit); err != nil {
		return req, err
	}
	if err := oneOf("when_busy", b.WhenBusy, string(engine.Enqueue), string(engine.Reject), string(engine.Steer), string(engine.Interrupt), string(engine.Rollback)); err != nil {
		return req, err
	}
	if err := object("metadata", b.Metadata); err != nil {
		return req, err
	}
	req = engine.StartRequest{Profile: b.Profile, Input: input, SessionID: b.SessionID, From: b.From, Mode: b.Mode, SessionMode: b.SessionMode,
		WhenBusy: engine.WhenBusy(b.WhenBusy), Context: given(b.Context), Page: given(b.Page), References: b.References, Metadata: given(b.Metadata), User: b.User}
	req.ContextBlocks = contextBlocks(b.ContextBlocks)
	if b.Budget != nil {
		for _, l := range []struct {
			name  string
			value int
		}{
			{"max_steps", b.Budget.MaxSteps}, {"max_tool_calls", b.Budget.MaxToolCalls},
			{"max_run_time_seconds", b.Budget.MaxRunTimeSeconds}, {"max_output_tokens", b.Budget.MaxOutputTokens},
			{"max_tokens", b.Budget.MaxTokens},
		} {
			if l.value < 0 {
				return req, wire.Invalid("budget."+l.name, "must not be negative")
			}
		}
		req.Overrides = engine.Overrides{MaxSteps: b.Budget.MaxSteps, MaxToolCalls: b.Budget.MaxToolCalls,
			MaxRunTimeSeconds: b.Budget.MaxRunTimeSeconds, MaxOutputTokens: b.Budget.MaxOutputTokens, MaxTokens: int64(b.Budget.MaxTokens)}
		if n := b.Budget.MaxCostUSD; n != "" {
			money, err := message.ParseMoney(n.String())
			if err != nil || money < 0 {
				return req, wire.Invalid("budget.max_cost_usd", "must be an amount in US dollars that is not negative, with at most nine decimals")
			}
			req.Overrides.MaxCostUSD = money
		}
	}
	return req, nil
}

// decodeInput reads what a user says: text and images.
func decodeInput(raw json.RawMessage) ([]message.Block, error) {
	if !wire.Given(raw) {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "input", Err: errors.New("is missing"), Hint: "Give a string or a list of text and image blocks."}
	}
	blocks, err := message.UnmarshalContent(raw)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "input", Err: err}
	}
	empty := true
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case message.BlockText:
			empty = empty && strings.TrimSpace(b.Text) == ""
		case message.BlockImage:
			if err := b.CheckImage(); err != nil {
				at := fmt.Sprintf("input[%d]", i)
				var in *message.ImageError
				if errors.As(err, &in) {
					at += "." + in.Field
				}
				return nil, wire.Invalid(at, "%w", err)
			}
			empty = false
		default:
			return nil, wire.Invalid(fmt.Sprintf("input[%d].type", i), "a person can send text and images, not %q", b.Type)
		}
	}
	if empty {
		return nil, wire.Invalid("input", "is empty")
	}
	return blocks, nil
}

func (s *Server) startRun(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	raw, err := wire.ReadBody(w, r, s.limits())
	if err != nil {
		return err
	}
	req, err := decodeStart(raw)
	if err != nil {
		return err
	}
	req.Tenant, req.IdempotencyKey = tenant(r), key
	if named := wire.UserOf(r, s.opts.UserHeader); named != "" {
		req.User = named
	}
	req.Caller = engine.CallerOf(wire.RequestOf(r.Context()).Key)
	if req.Profile == "" {
		req.Profile, req.Defaulted = s.opts.DefaultProfile, true
	}
	run, err := s.engine.Start(r.Context(), req)
	if err != nil {
		return err
	}
	return started(w, r, run)
}

// started tells of a run that was accepted.
func started(w http.ResponseWriter, r *http.Request, run *engine.Run) error {
	wire.RequestOf(r.Context()).Run = run.ID
	w.Header().Set("Location", "/runs/"+url.PathEscape(run.ID))
	wire.WriteJSON(w, http.StatusCreated, struct {
		RunID     string `json:"run_id"`
		SessionID string `json:"session_id"`
		Status    string `json:"status"`
	}{run.ID, run.SessionID, run.Status})
	return nil
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	run, err := s.engine.Get(r.Context(), ref(r))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, run)
	return nil
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "session_id", "status", "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	status := q.Get("status")
	if err := oneOf("status", status, "queued", "running", "paused_checkpoint", "completed", "failed", "cancelled"); err != nil {
		return err
	}
	runs, cursor, err := s.engine.List(r.Context(), tenant(r), engine.RunFilter{SessionID: q.Get("session_id"), Status: status, Cursor: q.Get("cursor"), Limit: limit})
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		Runs   []*engine.Run `json:"runs"`
		Cursor string        `json:"cursor,omitempty"`
	}{list(runs), cursor})
	return nil
}

func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Reason string `json:"reason"`
	}
	if err := s.readOptional(w, r, &b); err != nil {
		return err
	}
	run, err := s.engine.Cancel(r.Context(), ref(r), b.Reason)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, run)
	return nil
}

func (s *Server) steer(w http.ResponseWriter, r *http.Request) error {
	input, about, err := s.readInput(w, r)
	if err == nil {
		err = s.engine.Steer(r.Context(), ref(r), input, about...)
	}
	return accepted(w, r, err)
}

func (s *Server) followUp(w http.ResponseWriter, r *http.Request) error {
	input, about, err := s.readInput(w, r)
	if err == nil {
		err = s.engine.FollowUp(r.Context(), ref(r), input, about...)
	}
	return accepted(w, r, err)
}

func accepted(w http.ResponseWriter, r *http.Request, err error) error {
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusAccepted, map[string]string{"run_id": r.PathValue("id"), "status": "accepted"})
	return nil
}

// readInput reads what a person says to a run, and what goes with it.
func (s *Server) readInput(w http.ResponseWriter, r *http.Request) ([]message.Block, []engine.ContextBlock, error) {
	var b struct {
		Input         json.RawMessage `json:"input"`
		ContextBlocks []contextBlock  `json:"context_blocks"`
	}
	if err := s.read(w, r, &b); err != nil {
		return nil, nil, err
	}
	input, err := decodeInput(b.Input)
	return input, contextBlocks(b.ContextBlocks), err
}

// contextBlocks are blocks of context as the engine has them, which checks them.
func contextBlocks(blocks []contextBlock) (out []engine.ContextBlock) {
	for _, b := range blocks {
		out = append(out, engine.ContextBlock(b))
	}
	return out
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := wire.ReadBody(w, r, s.limits())
	if err != nil {
		return err
	}
	return wire.Decode(raw, into)
}

// readOptional is read where no body is as good as {}.
func (s *Server) readOptional(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := wire.ReadBody(w, r, s.limits())
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return err
	}
	return wire.Decode(raw, into)
}

func tenant(r *http.Request) string { return wire.RequestOf(r.Context()).Tenant }

// ref names what the path is about.
func ref(r *http.Request) engine.Ref {
	return engine.Ref{Tenant: tenant(r), ID: r.PathValue("id")}
}

func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", wire.Invalid("Idempotency-Key", "must be at most 255 printable ASCII characters")
	}
	return key, nil
}

// query gives the query and refuses parameters that nobody would read.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("the query can not be read: %w", err)}
	}
	for name := range q {
		if !slices.Contains(known, name) {
			return nil, &fault.Error{Kind: fault.Invalid, Field: wire.Clip(name, 80), Err: errors.New("unknown query parameter"),
				Hint: "The parameters are: " + strings.Join(known, ", ") + "."}
		}
	}
	return q, nil
}

func limitOf(q url.Values) (int, error) {
	v := q.Get("limit")
	if v == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxLimit {
		return 0, wire.Invalid("limit", "must be a number from 1 to %d", maxLimit)
	}
	return n, nil
}

func oneOf(field, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf("%q is not a choice", wire.Clip(value, 60)), Hint: "Use " + strings.Join(allowed, ", ") + "."}
}

func object(field string, raw json.RawMessage) error {
	if wire.Given(raw) && bytes.TrimSpace(raw)[0] != '{' {
		return wire.Invalid(field, "must be an object")
	}
	return nil
}

// given drops a null.
func given(raw json.RawMessage) json.RawMessage {
	if !wire.Given(raw) {
		return nil
	}
	return raw
}

// list makes an empty list what it is in JSON.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
