package workspace

import (
	"bytes"
	"context"
	_ "embed" // the description beside this file
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"agentd/tool"
)

//go:embed grep.md
var grepDescription string

const grepSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","minLength":1,"maxLength":512,"description":"Regular expression (RE2)."},` +
	`"path":{"type":"string","description":"File or folder to search; the project folder if not given."},` +
	`"glob":{"type":"string","maxLength":256,"description":"Only files that match, such as *.go or src/**/*.ts."},` +
	`"output_mode":{"type":"string","enum":["content","files","count"],"description":"What to give; default content."},` +
	`"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines to show around each match."},` +
	`"ignore_case":{"type":"boolean","description":"Match letters in both cases."},` +
	`"head_limit":{"type":"integer","minimum":1,"maximum":1000,"description":"How many matches or files to give; default 100."}},` +
	`"required":["pattern"],"additionalProperties":false}`

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Mode       string `json:"output_mode"`
	Context    int    `json:"context"`
	IgnoreCase bool   `json:"ignore_case"`
	Limit      int    `json:"head_limit"`
}

// maxMatchLine is the bytes of a line that are shown.
const maxMatchLine = 500

type grepDetails struct {
	// Matches and Files count what was found, as far as the search went.
	Matches int `json:"matches"`
	Files   int `json:"files"`
	// Skipped counts files that are too large to search.
	Skipped int `json:"skipped,omitempty"`
	// Cut is whether there may be more than the result holds.
	Cut bool `json:"cut,omitempty"`
}

// search is one grep under way.
type search struct {
	w    *Workspace
	args grepArgs
	re   *regexp.Regexp
	out  strings.Builder
	grepDetails
	given int // matches or files written
}

func (w *Workspace) grep(ctx context.Context, a grepArgs) (tool.Result, error) {
	s := &search{w: w, args: a}
	if err := s.prepare(); err != nil {
		return tool.Result{}, err
	}
	rel, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := w.open(rel)
	if err != nil {
		return tool.Result{}, w.reason(a.Path, rel, err)
	}
	f.Close()
	stopped := false
	if info.IsDir() {
		stopped, err = w.walk(ctx, rel, func(file string) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !s.wanted(below(rel, file)) {
				return nil
			}
			return s.file(file)
		})
	} else {
		err = s.file(rel)
	}
	if err != nil && !errors.Is(err, errFull) {
		return tool.Result{}, err
	}
	return s.finish(stopped)
}

func (s *search) prepare() error {
	a := &s.args
	if a.Pattern == "" || len(a.Pattern) > 512 {
		return refuse("pattern must have 1 to 512 letters.")
	}
	expr := a.Pattern
	if a.IgnoreCase {
		expr = "(?i:" + expr + ")"
	}
	var err error
	if s.re, err = regexp.Compile(expr); err != nil {
		return refuse("The pattern is not a regular expression (%s). Escape special letters with a backslash: \\( \\[ \\. \\*. RE2 has no look-around and no back references.",
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if a.Glob != "" && (len(a.Glob) > 256 || !doublestar.ValidatePattern(a.Glob)) {
		return refuse("%q is not a glob pattern.", a.Glob)
	}
	switch a.Mode {
	case "":
		a.Mode = "content"
	case "content", "files", "count":
	default:
		return refuse("output_mode must be content, files or count, not %q.", a.Mode)
	}
	if a.Limit <= 0 {
		a.Limit = 100
	}
	a.Limit = min(a.Limit, 1000)
	a.Context = min(max(0, a.Context), 20)
	return nil
}

// wanted reports whether the glob lets the file through: patterns without a
// slash match its name, others its path below the searched folder.
func (s *search) wanted(rel string) bool {
	switch {
	case s.args.Glob == "":
		return true
	case !strings.Contains(s.args.Glob, "/"):
		return doublestar.MatchUnvalidated(s.args.Glob, path.Base(rel))
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(s.args.Glob, "./"), rel)
}

// errFull ends a search whose result has reached its limit.
var errFull = errors.New("the result is full")

func (s *search) file(rel string) error {
	f, info, err := s.w.open(rel)
	if err != nil {
		return nil // it went away or may not be read: the rest still counts
	}
	defer f.Close()
	if info.Size() > s.w.opts.MaxFileBytes {
		s.Skipped++
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, s.w.opts.MaxFileBytes))
	if err != nil || binary(data) {
		return nil
	}
	// Most files of a tree hold nothing: look for what every match begins with
	// before cutting the file into lines.
	if prefix, _ := s.re.LiteralPrefix(); prefix != "" && !bytes.Contains(data, []byte(prefix)) {
		return nil
	}
	var hits []int
	lines := splitLines(data)
	for i, line := range lines {
		if s.re.Match(line) {
			hits = append(hits, i)
		}
	}
	if len(hits) == 0 {
		return nil
	}
	s.Files++
	s.Matches += len(hits)
	name := clean([]byte(rel), maxLine)
	switch s.args.Mode {
	case "files":
		return s.put(name + "\n")
	case "count":
		return s.put(fmt.Sprintf("%s:%d\n", name, len(hits)))
	}
	return s.content(name, lines, hits)
}

func (s *search) content(name string, lines [][]byte, hits []int) error {
	next := 0 // first line that is not written yet
	for n, hit := range hits {
		if s.full(0) {
			return errFull
		}
		from := max(next, hit-s.args.Context)
		if s.args.Context > 0 && s.out.Len() > 0 && (n == 0 || from > next) {
			s.out.WriteString("--\n")
		}
		for i := from; i < hit; i++ {
			fmt.Fprintf(&s.out, "%s-%d-%s\n", name, i+1, clean(lines[i], maxMatchLine))
		}
		if err := s.put(fmt.Sprintf("%s:%d:%s\n", name, hit+1, clean(lines[hit], maxMatchLine))); err != nil {
			return err
		}
		next = hit + 1
		until := min(len(lines), hit+1+s.args.Context)
		if n+1 < len(hits) {
			until = min(until, hits[n+1])
		}
		for ; next < until; next++ {
			fmt.Fprintf(&s.out, "%s-%d-%s\n", name, next+1, clean(lines[next], maxMatchLine))
		}
	}
	return nil
}

// put writes a match, or says that the result is full.
func (s *search) put(text string) error {
	if s.full(len(text)) {
		return errFull
	}
	s.given++
	s.out.WriteString(text)
	return nil
}

// full reports, and notes, that n more bytes do not fit.
func (s *search) full(n int) bool {
	if s.given < s.args.Limit && s.out.Len()+n <= s.w.opts.MaxBytes {
		return false
	}
	s.Cut = true
	return true
}

func (s *search) finish(stopped bool) (tool.Result, error) {
	if s.Matches == 0 {
		s.out.WriteString("No matches found.")
	}
	if s.Cut {
		fmt.Fprintf(&s.out, "[The first %d; there are more. Narrow the pattern, path or glob, or raise head_limit.]\n", s.given)
	}
	if s.Skipped > 0 {
		fmt.Fprintf(&s.out, "\n[%d files were skipped: larger than %d bytes.]", s.Skipped, s.w.opts.MaxFileBytes)
	}
	if stopped {
		s.Cut = true
		fmt.Fprintf(&s.out, "\n[Stopped after looking at %d entries: give a path.]", s.w.opts.MaxFiles)
	}
	return result(strings.TrimSpace(s.out.String()), s.grepDetails)
}

// splitLines gives the lines without their ends.
func splitLines(data []byte) [][]byte {
	data = bytes.TrimSuffix(data, []byte{'\n'})
	lines := bytes.Split(data, []byte{'\n'})
	for i, l := range lines {
		lines[i] = bytes.TrimSuffix(l, []byte{'\r'})
	}
	return lines
}
