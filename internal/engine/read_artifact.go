package engine

import (
	"context"
	_ "embed" // the description beside this file
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/tool"
)

// ReadArtifact is the name of the tool with which models read on in results that
// were too large. A run has it if it has tools whose results may be; whether there
// is an artifact yet makes no difference, because tools do not change while a run lasts.
const ReadArtifact = "read_artifact"

//go:embed read_artifact.md
var readArtifactDescription string

const readArtifactSchema = `{"type":"object","properties":{` +
	`"artifact_id":{"type":"string","minLength":1,"description":"Id of the artifact."},` +
	`"offset":{"type":"integer","minimum":0,"description":"First byte to read, or to search from; 0 is the beginning."},` +
	`"limit":{"type":"integer","minimum":1,"description":"How many bytes to read at most."},` +
	`"grep":{"type":"string","minLength":1,"description":"Regular expression (RE2); only lines that match are given."}},` +
	`"required":["artifact_id"],"additionalProperties":false}`

// readArtifact reads artifacts of the run's own tree of sessions. What it gives is
// bounded by itself and never stored as an artifact again.
type readArtifact struct{ e *Engine }

// Spec describes the tool.
func (readArtifact) Spec() tool.Spec {
	return tool.Spec{Name: ReadArtifact, Label: "Read artifact", Description: strings.TrimSpace(readArtifactDescription), Effect: tool.Read,
		Timeout: 30 * time.Second, Source: "builtin", Schema: json.RawMessage(readArtifactSchema)}
}

type readArtifactArgs struct {
	ID     string `json:"artifact_id"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
	Grep   string `json:"grep"`
}

// Run reads a part.
func (t readArtifact) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	var a readArtifactArgs
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.ErrorResult("The arguments are not right: " + err.Error()), nil
	}
	text, err := t.content(ctx, &call, a.ID)
	if err != nil {
		return tool.ErrorResult(describe(err)), nil
	}
	room := t.e.cfg.MaxResultBytes * 3 / 4
	if a.Grep == "" {
		return part(text, a.Offset, a.Limit, room), nil
	}
	re, err := regexp.Compile(a.Grep)
	if err != nil {
		return tool.ErrorResult("grep is not a regular expression (RE2): " + err.Error()), nil
	}
	return matches(ctx, text, re, a.Offset, room), nil
}

// content is an artifact's, if a session of the run's tree has it.
func (t readArtifact) content(ctx context.Context, call *tool.Call, id string) (string, error) {
	e, tenant := t.e, call.Tenant
	uses, err := e.store.ArtifactUses(ctx, tenant, id)
	if err != nil {
		return "", internal("engine.readArtifact", err)
	}
	family := []string{call.SessionID}
	if slices.ContainsFunc(uses, func(a *store.Artifact) bool { return a.SessionID != call.SessionID }) {
		if family, err = e.family(ctx, tenant, call.RunID); err != nil {
			return "", internal("engine.readArtifact", err)
		}
	}
	unknown := &fault.Error{Kind: fault.NotFound, Err: errors.New("There is no artifact " + id + " in this session."), Hint: "Ids are in <persisted-output> of earlier results."}
	var expired *store.Artifact
	for _, a := range uses {
		switch {
		case !slices.Contains(family, a.SessionID):
		case a.Expired > 0:
			expired = a
		default:
			b, err := e.store.Blob(ctx, tenant, id)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return "", internal("engine.readArtifact", err)
			}
			return string(b.Data), nil
		}
	}
	if expired != nil {
		return "", &fault.Error{Kind: fault.NotFound, Err: errors.New("The content of " + gone(expired) + "."), Hint: "Call the tool again that gave it."}
	}
	return "", unknown
}

// family is the sessions of the tree that a run belongs to: that of its root, and
// those of all subagents that were ever started from there.
func (e *Engine) family(ctx context.Context, tenant, runID string) ([]string, error) {
	row, err := e.store.Run(ctx, tenant, runID)
	if err != nil {
		return nil, err
	}
	if row.RootID != "" && row.RootID != row.ID {
		if row, err = e.store.Run(ctx, tenant, row.RootID); err != nil {
			return nil, err
		}
	}
	return e.store.Family(ctx, tenant, row.SessionID)
}

// part is what lies between two offsets.
func part(text string, offset, limit, room int) tool.Result {
	if offset >= len(text) && len(text) > 0 {
		return tool.ErrorResult(fmt.Sprintf("The artifact has %d bytes; offset %d is behind its end.", len(text), offset))
	}
	if limit <= 0 || limit > room {
		limit = room
	}
	offset = max(0, min(offset, len(text)))
	for offset > 0 && !utf8.RuneStart(text[offset]) {
		offset--
	}
	shown := head(text[offset:], limit)
	if shown == "" && offset < len(text) { // a limit of less than a character
		_, size := utf8.DecodeRuneInString(text[offset:])
		shown = text[offset : offset+size]
	}
	end := offset + len(shown)
	note := fmt.Sprintf("[Bytes %d to %d of %d; this is the end.]", offset, end, len(text))
	if end < len(text) {
		note = fmt.Sprintf("[Bytes %d to %d of %d. Go on with offset %d.]", offset, end, len(text), end)
	}
	return tool.TextResult(shown + "\n" + note)
}

// matchBytes is how much of a line that matches is shown: around the match, if the
// line is longer.
const matchBytes = 400

// matches gives the lines from an offset on that match.
func matches(ctx context.Context, text string, re *regexp.Regexp, offset, room int) tool.Result {
	var out strings.Builder
	found, next := 0, -1
	for at, n := max(0, min(offset, len(text))), 0; at < len(text); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return tool.ErrorResult("The search took too long: " + context.Cause(ctx).Error())
		}
		line, _, _ := strings.Cut(text[at:], "\n")
		if loc := re.FindStringIndex(line); loc != nil {
			from := max(0, loc[0]-matchBytes/4)
			for from > 0 && !utf8.RuneStart(line[from]) {
				from--
			}
			shown := fmt.Sprintf("%d: %s", at+from, head(line[from:], matchBytes))
			if len(line)-from > matchBytes {
				shown += " …"
			}
			if out.Len()+len(shown) >= room && found > 0 {
				next = at
				break
			}
			found++
			out.WriteString(strings.TrimSuffix(shown, "\r") + "\n")
			// A line without end may have more.
			if rest := from + matchBytes; len(line) > rest && loc[1] < len(line) {
				for at += max(loc[1], rest); at < len(text) && !utf8.RuneStart(text[at]); {
					at++
				}
				continue
			}
		}
		at += len(line) + 1
	}
	switch {
	case found == 0:
		return tool.TextResult(fmt.Sprintf("[No line from byte %d on matches; the artifact has %d bytes.]", offset, len(text)))
	case next >= 0:
		fmt.Fprintf(&out, "[%d matches, each with its offset. There are more: go on with offset %d.]", found, next)
	default:
		fmt.Fprintf(&out, "[%d matches, each with its offset.]", found)
	}
	return tool.TextResult(out.String())
}

// readsOn is whether a run has read_artifact: if results may be too large, and
// nobody took it away or has a tool of that name.
func readsOn(a *Agent, o *Overrides) bool {
	if a.NoReadArtifact || a.Tools.Len() == 0 && len(a.Subagents) == 0 {
		return false
	}
	_, _, taken := a.Tools.Lookup(ReadArtifact)
	return !taken && !slices.ContainsFunc(o.ClientTools, func(c ClientTool) bool { return c.Name == ReadArtifact })
}

// own is whether a tool is read_artifact itself.
func own(t tool.Tool) bool {
	_, ok := t.(readArtifact)
	return ok
}
