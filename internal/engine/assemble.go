package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"agentd/internal/prompt"
	"agentd/message"
	"agentd/model"
)

// ContextSource gives what of the world goes with the messages of a run: blocks of
// context, in the order in which models read them. Each run asks once, before it
// starts; what is the same as the conversation was told is not said again. A block
// without a text says that what was told of its kind no longer holds; a kind that is
// not among them stays as it was. An error is logged, and the run does without. All
// sources of a run together have Config.ContextTimeout: one that does not listen to ctx
// is left behind then, and those after it are not asked.
type ContextSource func(ctx context.Context, of *ContextRequest) ([]prompt.Block, error)

// ContextRequest is for whom context is wanted.
type ContextRequest struct {
	Run             Ref
	SessionID, User string
	Profile         string
	// RunMode is Interactive or Autonomous.
	RunMode string
	// Words are what the person says, "" if nobody says anything. Now is when.
	Words string
	Now   time.Time
}

// ContextBlock is a block of context that a request brings.
type ContextBlock = prompt.Block

// assembled is what the prompt of a run was made of.
type assembled struct {
	// For this agent and these tools.
	agent *Agent
	tools []string
	mode  string
	// parts and sections are the system prompt; sections has the examples, too.
	parts    []model.SystemPart
	sections []model.Section
	// noted are the sections that the run's trace has.
	noted []model.Section
	// world is what the agent's sources said, opening the input that it goes with.
	world   []prompt.Block
	opening string
}

// facts are what the sections of the run's prompt depend on, at a time.
func (d *driver) promptFacts(at time.Time) *prompt.Facts {
	return &prompt.Facts{RunMode: d.row.Mode, Mode: d.mode(), Profile: d.row.Profile, User: d.row.User, Tools: d.tools.set.Names(), Named: d.agent.Facts,
		Date: at.Format("2006-01-02"), Time: at.Format("15:04 MST")}
}

// system is the agent's system prompt with what the request appends, and what it is
// made of. Its date is that of the run, so that no step has another one.
func (d *driver) system() ([]model.SystemPart, []model.Section) {
	p := &d.prompt
	tools := d.tools.set.Names()
	if p.agent == d.agent && p.mode == d.mode() && slices.Equal(p.tools, tools) {
		return p.parts, p.sections
	}
	p.agent, p.mode, p.tools = d.agent, d.mode(), tools
	began := time.UnixMilli(d.row.Created).In(d.e.cfg.Now().Location())
	p.parts, p.sections = d.agent.Prompt.System(d.promptFacts(began))
	if s := d.spec.Overrides.System; s != "" {
		p.parts = append(p.parts, model.SystemPart{Text: s, Cache: true})
		p.sections = append(p.sections, prompt.Made("request", prompt.Turn, s))
	}
	if len(d.agent.Examples) > 0 {
		var b strings.Builder
		for i := range d.agent.Examples {
			fmt.Fprintf(&b, "%s\x00%s\x00", d.agent.Examples[i].Role, d.agent.Examples[i].Text())
		}
		p.sections = append(p.sections, prompt.Made("few_shot_examples", prompt.Static, b.String()))
	}
	return p.parts, p.sections
}

// news are the sections that a step was made with, if the trace does not have them:
// most steps of a run have those of the one before.
func (d *driver) newSections() []model.Section {
	p := &d.prompt
	if slices.Equal(p.noted, p.sections) {
		return nil
	}
	p.noted = p.sections
	return p.sections
}

// opens notes which of the messages that the run begins with are the newest words of a
// person, and gives them, or nil: what is ahead of them is a client's own history.
func (d *driver) opens() *message.Message {
	d.prompt.opening = ""
	for i := len(d.spec.Prompt) - 1; i >= 0; i-- {
		if m := d.conv.inputs[d.spec.Prompt[i]]; m != nil && m.Role == message.RoleUser {
			d.prompt.opening = d.spec.Prompt[i]
			return m
		}
	}
	return nil
}

// historic is whether an input is history that the run brings, ahead of its newest words.
func (d *driver) historic(input string) bool {
	return d.prompt.opening != "" && input != d.prompt.opening && slices.Contains(d.spec.Prompt, input)
}

// gather asks the agent's sources, ahead of the run's first message.
func (d *driver) gather() {
	d.prompt.world = nil
	m := d.opens()
	if len(d.agent.Context) == 0 || m == nil {
		return
	}
	of := &ContextRequest{Run: d.ref, SessionID: d.row.SessionID, User: d.row.User, Profile: d.row.Profile, RunMode: d.row.Mode, Now: d.e.cfg.Now(), Words: m.Text()}
	ctx, cancel := context.WithTimeout(d.ctx, d.e.cfg.ContextTimeout)
	defer cancel()
	for _, source := range d.agent.Context {
		if d.ctx.Err() != nil {
			return
		}
		if ctx.Err() != nil {
			d.e.log.Warn("the time for sources of context is over; the run does without the others", "run", d.ref.ID, "profile", d.row.Profile)
			return
		}
		blocks, err := patiently(ctx, d.e, func() ([]prompt.Block, error) { return source(ctx, of) })
		if err != nil && d.ctx.Err() == nil {
			d.e.log.Warn("a source of context failed; the run does without", "run", d.ref.ID, "profile", d.row.Profile, "error", err)
			continue
		}
		for _, b := range blocks {
			if !prompt.Kind(b.Kind) {
				d.e.log.Warn("a source of context gave a kind that is none", "run", d.ref.ID, "kind", b.Kind)
				continue
			}
			d.prompt.world = append(d.prompt.world, b)
		}
	}
}

// patiently gives what f gives, or the error of ctx if that ends first. f is told so by ctx,
// too; if it does not listen it is left behind, and what it brings is dropped: nobody can
// end it, and neither the run nor the end of the engine waits for it. f must write to
// nothing that others read. One that panics has failed.
func patiently[T any](ctx context.Context, e *Engine, f func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1)
	e.workers.run(func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				e.log.Error("a source of what goes with a message panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				o = outcome{err: fmt.Errorf("it panicked: %v", p)}
			}
			done <- o
		}()
		o.v, o.err = f()
	})
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done: // it listened
		return o.v, o.err
	default:
		var none T
		return none, context.Cause(ctx)
	}
}

// assemble puts what is known of the world beside the words of a person: what the
// agent's sources said, its sections of tier turn, and what came with the message. What
// the conversation was told already is left out. It is done as the message becomes part
// of the conversation, because only then is it known what was told before; from then on
// the message is sent as it is. m is not changed.
func (d *driver) assemble(input string, m *message.Message) *message.Message {
	if m.Role != message.RoleUser || d.historic(input) {
		return m
	}
	given, words := m.Split()
	own := d.prompt.world
	if d.agent.Prompt != nil {
		own = append(own[:len(own):len(own)], d.agent.Prompt.Blocks(d.promptFacts(d.e.cfg.Now()))...)
	}
	if late := d.tools.late; late != nil {
		own = append(own[:len(own):len(own)], prompt.Block{Kind: toolsContext, Text: late.news(&d.tools.set)})
	}
	mode, moded := d.modeBlock()
	if len(given) == 0 && len(own) == 0 && !moded {
		return m
	}
	var content []message.Block
	if moded {
		content = append(content, mode)
	}
	for i := range own {
		b := own[i].Content()
		if !slices.ContainsFunc(given, func(g message.Block) bool { return g.Context == b.Context }) && d.conv.told.News(&b) {
			content = append(content, b)
		}
	}
	for i := range given {
		if d.conv.told.News(&given[i]) {
			content = append(content, given[i])
		}
	}
	out := *m
	out.Content = append(content, words...)
	return &out
}
