package prefix

import "encoding/json"

// Record is what is stored of a request that was answered, beside its outcome: the sum
// of its print, and of its parts those that the request before does not have. It holds
// no text.
type Record struct {
	// Entry is that of the reply. Run and Before name the record of the request before:
	// the run that it is of and its Entry; empty for the first.
	Entry  string `json:"e"`
	Run    string `json:"r,omitempty"`
	Before string `json:"b,omitempty"`
	// Prompt is how many tokens the provider counted, Read and Written those of them that
	// it read from and wrote to its cache.
	Prompt  int64 `json:"p,omitempty"`
	Read    int64 `json:"cr,omitempty"`
	Written int64 `json:"cw,omitempty"`
	// Time is when it was sent, in Unix milliseconds.
	Time int64 `json:"at"`

	// Toolset is the hash of the list of tools that it was sent with, where that list is
	// kept, and ToolsetRun the run whose trace has the list.
	Toolset    string `json:"ts,omitempty"`
	ToolsetRun string `json:"tr,omitempty"`

	Model     string   `json:"m"`
	Settings  []string `json:"s,omitempty"`
	ToolsSum  string   `json:"t"`
	SystemSum string   `json:"y"`
	Sum       string   `json:"c"`
	N         int      `json:"n"`
	// From is how many messages are those of the request before; Messages are the
	// others. Tools and System are there where they are others than before.
	From     int         `json:"f,omitempty"`
	Messages [][2]string `json:"h,omitempty"`
	Tools    [][2]string `json:"tools,omitempty"`
	System   [][2]string `json:"system,omitempty"`
}

// NewRecord records a print after the request of another record; nil for the first.
func NewRecord(p *Print, before *Record) *Record {
	s := p.Sum()
	r := &Record{Model: s.Model, Settings: s.Settings, ToolsSum: s.Tools.String(), SystemSum: s.System.String(), Sum: s.Messages.String(), N: s.N}
	if before != nil {
		if sum := before.sum(); sum.N <= len(p.Messages) && chained(p.Messages[:sum.N]) == sum.Messages {
			r.From = sum.N
		}
	}
	r.Messages = pairs(p.Messages[r.From:])
	if before == nil || before.ToolsSum != r.ToolsSum {
		r.Tools = pairs(p.Tools)
	}
	if before == nil || before.SystemSum != r.SystemSum {
		r.System = pairs(p.System)
	}
	return r
}

func pairs(parts []Part) (out [][2]string) {
	if len(parts) == 0 {
		return nil
	}
	out = make([][2]string, len(parts))
	all := make([]byte, 0, len(parts)*hashLetters)
	for i := range parts {
		all = parts[i].Hash.append(all)
	}
	hashes := string(all) // in one piece: a long conversation has thousands
	for i := range parts {
		out[i] = [2]string{parts[i].Name, hashes[i*hashLetters : (i+1)*hashLetters]}
	}
	return out
}

func (r *Record) sum() Sum {
	return Sum{Model: r.Model, Settings: r.Settings, Tools: ParseHash(r.ToolsSum), System: ParseHash(r.SystemSum), Messages: ParseHash(r.Sum), N: r.N}
}

// Extended reports whether a print begins with all of the request.
func (r *Record) Extended(p *Print) bool {
	s := r.sum()
	return p.Extends(&s)
}

// Rebuild gives the print of a record's request, out of the records before it: before
// gives the one that a record follows, nil if there is none. What can not be found is
// missing at the beginning of the list that it belongs to, and ok is false.
func Rebuild(r *Record, before func(*Record) *Record) (p *Print, ok bool) {
	p = &Print{Model: r.Model, Settings: r.Settings}
	tools, system := r.ToolsSum == chainSeed.String(), r.SystemSum == chainSeed.String()
	messages := make([]Part, r.N)
	need := r.N // messages that are missing, from the first on
	for n := 0; r != nil && n < maxRecords; n++ {
		if !tools && len(r.Tools) > 0 {
			p.Tools, tools = parts(r.Tools), true
		}
		if !system && len(r.System) > 0 {
			p.System, system = parts(r.System), true
		}
		if r.From < need && r.From+len(r.Messages) >= need {
			copy(messages[r.From:need], parts(r.Messages))
			need = r.From
		}
		if need == 0 && tools && system {
			break
		}
		r = before(r)
	}
	p.Messages = messages
	return p, need == 0 && tools && system
}

// maxRecords bounds how far back is looked for what changed.
const maxRecords = 100_000

func parts(pairs [][2]string) []Part {
	out := make([]Part, len(pairs))
	for i, p := range pairs {
		out[i] = Part{p[0], ParseHash(p[1])}
	}
	return out
}

// Decode reads a record; nil if it is none.
func Decode(raw json.RawMessage) *Record {
	var r Record
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil || r.Entry == "" || r.N < 0 || r.From < 0 || r.From+len(r.Messages) > r.N {
		return nil
	}
	return &r
}
