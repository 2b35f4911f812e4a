package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// span is a time for people: 12 ms, 3.4 s, 2m05s, 3d04h.
func span(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case ms < 3_600_000:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case ms < 86_400_000:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// painter draws timelines. width is that of the lines, bar of the part with time.
type painter struct {
	b          *strings.Builder
	t          *timeline
	width, bar int
	fancy      bool
	axis       axis
}

// draw gives the timeline as lines of at most width cells; fancy uses more than
// ASCII.
func (t *timeline) draw(width int, fancy bool) string {
	if len(t.Steps)+len(t.Notes) == 0 {
		return ""
	}
	p := &painter{b: &strings.Builder{}, t: t, width: max(width, 40), fancy: fancy, axis: newAxis(t)}
	p.bar = min(max(p.width/4, 10), 40)
	p.ruler()
	for _, n := range t.Notes {
		p.note(n)
	}
	some := false
	for _, s := range t.Steps {
		p.step(s)
		for _, c := range s.Calls {
			some = some || hidden(string(c.Args)) || hidden(c.Result)
		}
	}
	if some {
		fmt.Fprintln(p.b, strings.Join(wrap("  Hidden: this configuration does not have the run's profile, which says what may be shown. Name its configuration with --configs.", nil, p.width), "\n"))
	}
	return p.b.String()
}

// hidden is whether the engine could not tell what of a text may be shown.
func hidden(s string) bool { return strings.HasPrefix(strings.TrimLeft(s, `"`), "[hidden: ") }

// axis maps times to lengths: as they are, but for waits that took longer than all work
// together. A night's wait for a person would leave no room for all that was done.
type axis struct {
	// from are the beginnings of the parts, at where they are drawn and rate how
	// much of their time is drawn.
	from, at []int64
	rate     []float64
	total    int64
	// shortened is whether some of the time is drawn shorter than it was.
	shortened bool
}

func newAxis(t *timeline) axis {
	type part struct{ from, to int64 }
	var busy []part
	add := func(from, to int64) {
		if to < 0 {
			to = t.TotalMS
		}
		if from >= 0 {
			busy = append(busy, part{from, max(from, to)})
		}
	}
	for _, s := range t.Steps {
		add(s.StartMS, s.EndMS)
		for _, c := range s.Calls {
			add(c.StartMS, c.EndMS)
		}
	}
	slices.SortFunc(busy, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	var gaps []part
	done, worked := int64(0), int64(0)
	for _, b := range append(busy, part{t.TotalMS, t.TotalMS}) {
		if b.from > done {
			gaps = append(gaps, part{done, b.from})
			done = b.from
		}
		worked += max(0, b.to-done)
		done = max(done, b.to)
	}
	a, length, last := axis{}, int64(0), int64(0)
	put := func(from, to int64, rate float64) {
		if to > from {
			a.from, a.at, a.rate = append(a.from, from), append(a.at, length), append(a.rate, rate)
			length += int64(float64(to-from) * rate)
		}
	}
	for _, g := range gaps {
		put(last, g.from, 1)
		rate := 1.0
		if worked > 0 && g.to-g.from > worked {
			rate, a.shortened = float64(worked/4+1)/float64(g.to-g.from), true
		}
		put(g.from, g.to, rate)
		last = g.to
	}
	put(last, t.TotalMS, 1)
	a.total = length
	return a
}

// place is where a time is drawn, in the axis's own length.
func (a *axis) place(ms int64) int64 {
	i, found := slices.BinarySearch(a.from, ms)
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return min(a.total, a.at[i]+int64(float64(ms-a.from[i])*a.rate[i]))
}

// scale is where a time is in the bar.
func (p *painter) scale(ms int64) int {
	if p.axis.total == 0 {
		return 0
	}
	return int(p.axis.place(min(ms, p.t.TotalMS)) * int64(p.bar-1) / p.axis.total)
}

// ruler says what the bars measure.
func (p *painter) ruler() {
	end := span(p.t.TotalMS)
	text := "0" + strings.Repeat(" ", max(1, p.bar-1-len(end))) + end
	if p.axis.shortened {
		text += "  (waits are drawn shorter than they were)"
	}
	fmt.Fprintln(p.b, clipTo("  "+text, p.width))
}

// maxRows bounds the lines of one row.
const maxRows = 4

// line writes a row: bar, label and what is known, below each other where it does not
// fit beside the bar.
func (p *painter) line(bar, label string, facts ...string) {
	rows := wrap(label, facts, p.width-p.bar-4)
	for i, row := range rows {
		if i == maxRows-1 && len(rows) > maxRows {
			row = clipTo(row+" "+rows[i+1], p.width-p.bar-4)
		}
		fmt.Fprintln(p.b, strings.TrimRight("  "+bar+"  "+row, " "))
		if i == maxRows-1 {
			return
		}
		bar = string(p.empty())
	}
}

// cells is how many places of a line a character takes.
func cells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case width.LookupRune(r).Kind() == width.EastAsianWide, width.LookupRune(r).Kind() == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func cellsOf(s string) (n int) {
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// clipTo cuts a text to a number of cells.
func clipTo(s string, n int) string {
	if cellsOf(s) <= n {
		return s
	}
	for i, r := range s {
		if n -= cells(r); n < 1 {
			return s[:i] + "…"
		}
	}
	return s
}

// wrap makes lines of at most n cells of a label and facts; all but the first are
// indented. A fact begins a new line where it does not fit, and is broken at its
// spaces only if it is longer than a line.
func wrap(label string, facts []string, n int) []string {
	const indent = "    "
	var rows []string
	row, between := "", ""
	put := func(text, between string) {
		if row != "" && cellsOf(row+between+text) > n {
			rows = append(rows, clipTo(strings.TrimRight(row, " "), n))
			row, between = indent, ""
		}
		row += between + text
	}
	for i, text := range append([]string{label}, facts...) {
		text = printable(text)
		if i > 0 && i < len(facts) {
			text += ","
		}
		if cellsOf(text) <= n-len(indent) {
			put(text, between)
		} else {
			for _, word := range strings.Split(text, " ") {
				put(word, between)
				between = " "
			}
		}
		if between = " "; i == 0 {
			between = "  "
		}
	}
	return append(rows, clipTo(row, n))
}

// paint fills the bar between two times; an end of -1 is now.
func (p *painter) paint(bar []rune, from, to int64, fill rune) {
	if to < 0 {
		to = p.t.TotalMS
	}
	for i := p.scale(from); i <= p.scale(to); i++ {
		bar[i] = fill
	}
}

func (p *painter) empty() []rune { return []rune(strings.Repeat(" ", p.bar)) }

func (p *painter) glyph(fancy, plain rune) rune {
	if p.fancy {
		return fancy
	}
	return plain
}

func (p *painter) note(n lineNote) {
	bar := p.empty()
	bar[p.scale(n.AtMS)] = p.glyph('·', '.')
	p.line(string(bar), shorten(n.Text, 400))
}

func (p *painter) step(s *lineStep) {
	bar := p.empty()
	p.paint(bar, s.StartMS, s.EndMS, p.glyph('█', '#'))
	took := "under way"
	if s.EndMS >= 0 {
		took = span(s.EndMS - s.StartMS)
	}
	facts := []string{took}
	if s.FirstMS > s.StartMS {
		facts = append(facts, "first text after "+span(s.FirstMS-s.StartMS))
	}
	if u := s.Usage; u != nil {
		facts = append(facts, fmt.Sprintf("%d in, %d out", u.Prompt(), u.Output))
		if s.CacheRatio > 0 {
			facts = append(facts, fmt.Sprintf("%.0f%% cached", s.CacheRatio*100))
		}
		if s.Saved != 0 {
			facts = append(facts, "saved $"+s.Saved.String())
		}
		if u.Cost.Total > 0 {
			facts = append(facts, "$"+u.Cost.Total.String())
		}
	}
	switch s.StopReason {
	case "", "stop", "tool_use", "toolUse":
	default:
		facts = append(facts, "ended by "+s.StopReason)
	}
	p.line(string(bar), fmt.Sprintf("%d %s", s.Step, shorten(s.Model, 60)), facts...)
	for _, n := range s.Notes {
		p.note(n)
	}
	for _, c := range s.Calls {
		p.call(c)
	}
}

// mark says in a character, or a word, how a call stands.
func (p *painter) mark(outcome string) string {
	fancy, plain := "?", "waits"
	switch outcome {
	case "ok":
		fancy, plain = "✓", "ok"
	case "error":
		fancy, plain = "✗", "failed"
	case "refused":
		fancy, plain = "✗", "refused"
	case "proposed":
		fancy, plain = "✎", "proposed"
	case "running":
		fancy, plain = "→", "under way"
	}
	if p.fancy {
		return fancy
	}
	return plain
}

func (p *painter) call(c *lineCall) {
	bar := p.empty()
	for _, w := range c.Waits {
		p.paint(bar, w.FromMS, w.ToMS, p.glyph('░', '.'))
	}
	end := c.EndMS
	if c.StartMS >= 0 {
		p.paint(bar, c.StartMS, end, p.glyph('▓', '='))
	} else if end >= 0 && len(c.Waits) == 0 {
		bar[p.scale(end)] = p.glyph('×', 'x')
	}
	label := p.mark(c.Outcome) + " " + shorten(c.Name, 80)
	switch args := shorten(string(c.Args), 60); {
	case hidden(string(c.Args)):
		label += " (hidden)"
	case args != "" && args != "{}":
		label += " " + args
	}
	var facts []string
	switch {
	case c.StartMS >= 0 && end >= 0:
		facts = append(facts, span(end-c.StartMS))
	case c.Outcome == "refused":
		facts = append(facts, "never ran")
	case c.Outcome == "proposed":
		facts = append(facts, "not made, but proposed")
	case c.Outcome == "running":
		facts = append(facts, "under way")
	}
	if d := c.Child; d != nil {
		child := strings.TrimSpace("run " + d.RunID + " " + d.Status)
		if u := d.Usage; u != nil && u.TotalTokens > 0 {
			child += fmt.Sprintf(", %d in, %d out", u.Prompt(), u.Output)
			if u.Cost.Total > 0 {
				child += ", $" + u.Cost.Total.String()
			}
		}
		facts = append(facts, child)
	}
	if c.Decision != "" || c.Reason != "" {
		facts = append(facts, strings.TrimPrefix(strings.TrimSuffix(c.Decision+": "+shorten(c.Reason, 200), ": "), ": "))
	}
	if c.Result != "" && c.Result != c.Reason && c.Outcome != "ok" && c.Outcome != "proposed" && !hidden(c.Result) {
		facts = append(facts, shorten(c.Result, 200))
	}
	p.line(string(bar), label, facts...)
	for _, w := range c.Waits {
		p.wait(w)
	}
}

func (p *painter) wait(w lineWait) {
	said := "waits for a person since " + span(p.t.TotalMS-w.FromMS)
	if w.ToMS >= 0 {
		said = "answered after " + span(w.ToMS-w.FromMS) + ": " + w.Decision
		if w.Reason != "" {
			said += " (" + shorten(w.Reason, 200) + ")"
		}
	}
	p.line(string(p.empty()), "  "+w.Kind+": "+shorten(w.Prompt, 120), said)
}
