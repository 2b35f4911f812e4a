package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"agentd/event"
	"agentd/message"
)

// Stop reasons of runs that met a limit. They also name the limit.
const (
	StopMaxSteps     = "max_steps"
	StopMaxToolCalls = "max_tool_calls"
	StopMaxCost      = "max_cost"
	StopMaxTokens    = "max_tokens"
	StopMaxFailures  = "max_failures_per_run"
)

// RaiseBudget is the name under which people are asked for more.
const RaiseBudget = "raise_budget"

// Pot is a budget that the run shares with others: with the runs above and below
// it, with its session, or with its tenant on one day. What is in it is in the
// store; the caps are captured when the run starts. Zero is no cap.
type Pot struct {
	// Kind is run, session or tenant_day. ID is the run's or the session's; days
	// have none, as each call counts for its own.
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// MaxCost is in billionths of a dollar.
	MaxCost      int64 `json:"max_cost,omitempty"`
	MaxTokens    int64 `json:"max_tokens,omitempty"`
	MaxToolCalls int64 `json:"max_tool_calls,omitempty"`
	MaxFailures  int64 `json:"max_failures,omitempty"`
	// Ask: an interactive run may ask a person for more of it.
	Ask bool `json:"ask,omitempty"`
}

// Cap is the cap of one of its limits, 0 for none.
func (p *Pot) Cap(limit string) int64 {
	switch limit {
	case StopMaxCost:
		return p.MaxCost
	case StopMaxTokens:
		return p.MaxTokens
	case StopMaxToolCalls:
		return p.MaxToolCalls
	case StopMaxFailures:
		return p.MaxFailures
	}
	return 0
}

// Reserve asks for what the next model call may use of the run's pots → Reserved,
// Exhausted. Key is the call's.
type Reserve struct {
	Key     string `json:"key"`
	Step    int    `json:"step"`
	Index   int    `json:"index,omitempty"`
	Closing string `json:"closing,omitempty"`
}

// EffectKind implements Effect.
func (Reserve) EffectKind() string { return "Reserve" }

// Reserved says that the next model call can be paid.
type Reserved struct {
	At
	// MaxTokens is how long the reply may be at most, 0 if that was not changed.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Calls is how many tool calls are left in the fullest pot; nil: no limit.
	Calls *int `json:"calls,omitempty"`
	// Near are limits that are nearly used up.
	Near []PotUse `json:"near,omitempty"`
}

// PotUse is how much of a limit of a pot is used.
type PotUse struct {
	Pot   string `json:"pot,omitempty"`
	ID    string `json:"id,omitempty"`
	Limit string `json:"limit"`
	// Cap and the others are in the limit's units: billionths of a dollar, tokens
	// or calls. Held is what others have reserved.
	Cap  int64 `json:"cap"`
	Used int64 `json:"used"`
	Held int64 `json:"held,omitempty"`
}

// Exhausted says that the next model call does not fit.
type Exhausted struct {
	At
	PotUse
	// Need is what it would have needed.
	Need int64 `json:"need,omitempty"`
	// Final: nothing is to be called any more, not even to close the answer.
	Final bool `json:"final,omitempty"`
}

// Kind implements Input.
func (Reserved) Kind() string { return "Reserved" }

// Kind implements Input.
func (Exhausted) Kind() string { return "Exhausted" }

// How a model call is settled.
const (
	SettleUsed = "used" // Usage says what it cost
	SettleFree = "free" // it cost nothing
	SettleLost = "lost" // nobody knows: what was reserved counts, or Usage if that is more
)

// Settle replaces what the run has reserved for a model call by what it cost.
type Settle struct {
	How   string
	Usage *message.Usage
	// Last: the run ends and holds nothing any more.
	Last bool
}

// RaisePot lets more of a pot be used, by a person's word.
type RaisePot struct {
	Pot, ID, Limit string
	By             int64
}

func (Settle) writeKind() string   { return "Settle" }
func (RaisePot) writeKind() string { return "RaisePot" }

// More is the open question whether the run may use more than a limit allows. It is
// an interrupt of the run itself, and no call waits for it.
type More struct {
	Interrupt string `json:"interrupt"`
	Expires   int64  `json:"expires,omitempty"`
	// PotUse has no Pot where the limit is the run's alone.
	PotUse
	// Need is what the next model call would have needed, By what is proposed.
	Need int64 `json:"need,omitempty"`
	By   int64 `json:"by"`
}

// reserve asks for the means of the next model call.
func (m *machine) reserve() {
	s := &m.State
	s.Phase = PhaseBudget
	c := s.Model
	m.do(Reserve{Key: c.Entry + "/" + strconv.Itoa(c.Index) + "/" + strconv.Itoa(c.Attempt) + "/" + strconv.Itoa(c.Again), Step: s.Step,
		Index: c.Index, Closing: s.Closing})
}

// settleCall settles the model call that has ended.
func (m *machine) settleCall(how string, u *message.Usage) {
	if len(m.State.Settings.Pots) == 0 {
		return
	}
	if how == SettleUsed && (u == nil || u.Estimated) {
		how = SettleLost // a guess is not what is billed
	}
	m.write(Settle{How: how, Usage: u})
}

func (m *machine) reserved(in Reserved) error {
	s := &m.State
	if s.Phase != PhaseBudget || s.Asks != nil {
		return m.illegal("no reservation is open")
	}
	if s.stopping() {
		m.settleCall(SettleFree, nil) // the call was not made
		m.end()
		return nil
	}
	s.Model.Calls = in.Calls
	for _, use := range in.Near {
		if key := use.Pot + "/" + use.Limit + "/" + use.ID; !slices.Contains(s.Warned, key) {
			s.Warned = append(s.Warned, key)
			m.tell(event.BudgetWarning, use.told())
		}
	}
	m.startModel()
	return nil
}

// exhausted decides what becomes of a run that can not pay its next call: a person
// is asked for more where that was wished for, else the answer is closed with what
// was kept for that. A closing call that does not fit is the end.
func (m *machine) exhausted(in Exhausted) error {
	s := &m.State
	switch {
	case s.Phase != PhaseBudget || s.Asks != nil:
		return m.illegal("no reservation is open")
	case s.stopping():
		m.end()
	case in.Cap <= 0 || !slices.Contains([]string{StopMaxCost, StopMaxTokens, StopMaxToolCalls, StopMaxFailures}, in.Limit):
		return m.illegal("it names no limit")
	case s.Held != "":
		m.holds(in.PotUse.String() + ".") // an answer is there: nothing more is spent, and nobody is asked
	case in.Final:
		m.spent(in)
	case s.Closing == "" && m.mayAsk(&in.PotUse):
		more := More{PotUse: in.PotUse, Need: in.Need, By: max(in.Cap, 1)}
		if p := s.pot(&in.PotUse); p != nil && p.Cap(in.Limit) > 0 {
			more.By = p.Cap(in.Limit) // by the same again, whatever was allowed before
		}
		if missing := in.Used + in.Held - in.Cap + 1; in.Need < 1<<62 {
			// Less than what is missing would only lead to the next question.
			more.By = max(more.By, missing+max(in.Need-1, 0))
		}
		m.askMore(more)
	case in.Limit == StopMaxFailures:
		m.tooManyFailures(in.Used)
	case s.Closing == "":
		s.Closing = in.Limit
		m.reserve()
	default:
		m.spent(in)
	}
	return nil
}

// spent ends a run that can pay nothing any more, with the answer that there is.
func (m *machine) spent(in Exhausted) {
	var e *event.Error
	status := Completed
	if m.State.Output == "" {
		status = Failed
		e = &event.Error{Kind: in.Limit, Message: in.PotUse.String() + "; the next model call may need " + amount(in.Limit, in.Need),
			Hint: "Raise the limit, or wait until others have released what they hold."}
		if in.Held == 0 {
			e.Hint = "Raise the limit, or ask for less."
		}
	}
	m.finish(status, in.Limit, e)
}

func (m *machine) tooManyFailures(n int64) {
	m.finish(Failed, StopMaxFailures, &event.Error{Kind: StopMaxFailures, Message: strconv.FormatInt(n, 10) + " tool calls failed",
		Hint: "Look at the failed calls, or raise max_failures_per_run in the profile."})
}

// limit is met between two steps: a person is asked for more, or the next model
// call closes the answer.
func (m *machine) limit(reason string, cap, used int) {
	use := PotUse{Limit: reason, Cap: int64(cap), Used: int64(used)}
	if m.mayAsk(&use) {
		m.askMore(More{PotUse: use, By: max(use.Cap, use.Used-use.Cap+1)})
		return
	}
	m.State.Closing = reason
	m.nextStep()
}

// final is whether the turn is closed for a limit that no message lifts: what is
// queued goes back to its sender.
func (s *State) final() bool {
	return s.Closing == StopMaxCost || s.Closing == StopMaxTokens || s.Closing == StopMaxToolCalls
}

// pot finds one of the run's pots. Of the days there is one, whichever it is.
func (s *State) pot(use *PotUse) *Pot {
	i := slices.IndexFunc(s.Settings.Pots, func(p Pot) bool { return p.Kind == use.Pot && (p.ID == use.ID || p.ID == "") })
	if i < 0 {
		return nil
	}
	return &s.Settings.Pots[i]
}

// mayAsk is whether a person may be asked for more. An autonomous run never asks.
func (m *machine) mayAsk(use *PotUse) bool {
	s := &m.State
	if s.Settings.Autonomous {
		return false
	}
	if use.Pot == "" {
		return s.Settings.AskMore
	}
	p := s.pot(use)
	return p != nil && p.Ask
}

// askMore opens an interrupt of the run itself.
func (m *machine) askMore(more More) {
	s := &m.State
	s.Asked++
	more.Interrupt, more.Expires = s.RunID+".i"+strconv.Itoa(s.Asked), m.expiry(0)
	s.Phase, s.Asks = PhaseBudget, &more
	prompt := more.PotUse.String()
	if more.Need > 0 {
		prompt += "; the next model call may need " + amount(more.Limit, about(more.Limit, more.Need))
	}
	prompt += ". May it use " + amount(more.Limit, more.By) + " more?"
	args := more.args()
	m.write(OpenInterrupt{ID: more.Interrupt, Kind: kindApproval, Name: RaiseBudget, Prompt: prompt, Args: args, Expires: more.Expires})
	m.tell(event.CheckpointRequired, &event.Checkpoint{InterruptID: more.Interrupt, Kind: kindApproval, Prompt: prompt,
		ToolCall: &event.Tool{Name: RaiseBudget, Args: args}})
}

// args shows the question as the arguments of a call, of which people may amend
// raise_by.
func (a *More) args() json.RawMessage {
	use := a.told()
	use.RaiseBy = number(a.Limit, a.By)
	if a.Need > 0 {
		use.Need = number(a.Limit, a.Need)
	}
	b, err := json.Marshal(use)
	if err != nil {
		panic("run: a budget is always JSON: " + err.Error())
	}
	return b
}

// answeredMore applies a person's answer to the question for more.
func (m *machine) answeredMore(in Answered) error {
	s := &m.State
	more := *s.Asks
	by := more.By
	if in.Raise != 0 {
		by = in.Raise
	}
	switch {
	case more.Expires != 0 && m.now >= more.Expires:
		return m.illegal("interrupt %q has expired", in.Interrupt)
	case in.Decision != "approve" && in.Decision != "reject":
		return m.illegal("%q does not answer an interrupt of kind %s", in.Decision, kindApproval)
	case in.Decision == "approve" && by <= 0:
		return m.illegal("less than nothing can not be allowed")
	case in.Decision == "reject":
		by = 0
	}
	m.tell(event.CheckpointResolved, &event.Checkpoint{InterruptID: more.Interrupt, Kind: kindApproval, Decision: in.Decision, Reason: in.Reason})
	m.decidedMore(more, by)
	return nil
}

// expiredMore is the end of a question that nobody answered. Nobody's silence
// spends money, whatever is declared for other approvals.
func (m *machine) expiredMore() {
	more := *m.State.Asks
	reason := "expired: " + nobodyAnswered
	m.write(CloseInterrupt{ID: more.Interrupt, Reason: reason, Expired: true, Decision: "reject"})
	m.tell(event.CheckpointResolved, &event.Checkpoint{InterruptID: more.Interrupt, Kind: kindApproval, Decision: "reject", Reason: reason})
	m.decidedMore(more, 0)
}

// closeMore withdraws the question.
func (m *machine) closeMore(reason string) {
	s := &m.State
	if s.Asks == nil {
		return
	}
	m.write(CloseInterrupt{ID: s.Asks.Interrupt, Reason: reason})
	m.tell(event.CheckpointResolved, &event.Checkpoint{InterruptID: s.Asks.Interrupt, Kind: kindApproval, Decision: "cancelled", Reason: reason})
	s.Asks = nil
}

// decidedMore goes on where the question came up: with more, or by closing.
func (m *machine) decidedMore(more More, by int64) {
	s := &m.State
	s.Asks = nil
	m.forget() // as with every answer
	own := more.Pot == ""
	switch {
	case by > 0 && own:
		n := int(min(by, 1<<30))
		switch more.Limit {
		case StopMaxSteps:
			s.Settings.MaxSteps += n
		case StopMaxToolCalls:
			s.Settings.MaxToolCalls += n
		case StopMaxFailures:
			s.Settings.MaxFailures += n
			m.afterBatch()
			return
		}
		m.checkpoint()
	case by > 0:
		m.write(RaisePot{Pot: more.Pot, ID: more.ID, Limit: more.Limit, By: by})
		m.reserve()
	case more.Limit == StopMaxFailures:
		m.tooManyFailures(more.Used)
	case own:
		s.Closing = more.Limit
		m.nextStep()
	default:
		s.Closing = more.Limit
		m.reserve()
	}
}

// String says for people how much of a limit is used.
func (u *PotUse) String() string {
	whose := "the run"
	switch u.Pot {
	case "run":
		whose = "run " + u.ID + " and those below it"
	case "session":
		whose = "session " + u.ID
	case "tenant_day":
		whose = "the tenant on " + u.ID
	}
	s := fmt.Sprintf("The limit of %s for %s is %s, of which %s are used", u.Limit, whose, amount(u.Limit, u.Cap), amount(u.Limit, u.Used))
	if u.Held > 0 {
		s += " and " + amount(u.Limit, u.Held) + " held by calls of others"
	}
	return s
}

// about rounds money up to three digits: what a call may need is a bound, and its last
// digits would make it look exact.
func about(limit string, n int64) int64 {
	unit := int64(1)
	for limit == StopMaxCost && n/unit >= 1000 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

func amount(limit string, n int64) string {
	switch limit {
	case StopMaxCost:
		return "$" + message.Money(n).String()
	case StopMaxTokens:
		return strconv.FormatInt(n, 10) + " tokens"
	}
	return strconv.FormatInt(n, 10)
}

// number is an amount on the wire: dollars, or a count.
func number(limit string, n int64) json.Number {
	if limit == StopMaxCost {
		return json.Number(message.Money(n).String())
	}
	return json.Number(strconv.FormatInt(n, 10))
}

// told is the event's form.
func (u *PotUse) told() *event.Budget {
	b := &event.Budget{Pot: u.Pot, ID: u.ID, Limit: u.Limit, Cap: number(u.Limit, u.Cap), Used: number(u.Limit, u.Used)}
	if u.Held > 0 {
		b.Held = number(u.Limit, u.Held)
	}
	return b
}
