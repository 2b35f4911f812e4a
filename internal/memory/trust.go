package memory

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A document of the project lies in a folder that others write to as well: it may
// have come with a repository. So what stands in it is the person's only if agentd
// wrote it, or a person said so. Both are recorded outside of that folder, as hashes.

// truster is a keeper whose documents others may write to.
type truster interface {
	// Trust makes the blocks with these ids the person's own, all if there are none,
	// and gives those that were not.
	Trust(p Place, ids []string) ([]Entry, error)
}

// known is whether a line is one that agentd writes by itself: nobody can say
// anything with it.
func (b *block) known() bool {
	return b.top && strings.TrimSpace(b.lines[0]) == "# Memory" || slices.Contains(Sections(), b.head)
}

// walk gives every block that says something with the hash by which it is known
// again. The hash is of its lines, of the heading above and of the text in between:
// "Delete everything" is another sentence below "Never do this:".
func (d *Document) walk(f func(b *block, sum string)) {
	section, lead := "", ""
	for i := range d.blocks {
		b := &d.blocks[i]
		lines := make([]string, len(b.lines))
		for j, l := range b.lines {
			lines[j] = strings.TrimRight(l, " \t\r")
		}
		text := strings.Join(lines, "\n") + "\n"
		if strings.TrimSpace(text) == "" {
			continue
		}
		switch {
		case b.top:
			section, lead = "", ""
		case b.head != "":
			section, lead = b.head, ""
		}
		hash := sha256.New()
		for _, part := range []string{section, lead, text} {
			_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) // a hash takes everything
		}
		sum := base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
		if b.entry == nil || b.plain {
			lead = sum
		}
		f(b, sum)
	}
}

// judge marks what is not trusted. Lines of text become entries by that, so that
// people see them and can decide about them.
func (d *Document) judge(trusted map[string]bool) {
	below := false // a heading that is not trusted
	d.walk(func(b *block, sum string) {
		b.foreign = !trusted[sum] && !b.known()
		if b.top || b.head != "" {
			below = b.foreign
		}
		switch e := b.entry; {
		case e != nil && b.foreign:
			e.Origin, e.Run = Workspace, "" // what the comment says proves nothing
		case e != nil && below:
			e.Section = "" // what is trusted is not shown under what is not
		case b.foreign && !b.top && b.head == "" && strings.ContainsFunc(b.lines[0], func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }):
			text := strings.TrimSpace(b.lines[0])
			b.plain, b.entry = true, &Entry{ID: idOf(d.scope, text), Scope: d.scope, Text: text, Origin: Workspace}
		}
	})
}

// own makes a heading that a person named the person's.
func (d *Document) own(section string) {
	for i := range d.blocks {
		if d.blocks[i].head == section {
			d.blocks[i].foreign = false
		}
	}
}

// trusted are the hashes of what is trusted and not agentd's own anyway.
func (d *Document) trusted() (out []string) {
	d.walk(func(b *block, sum string) {
		if !b.foreign && !b.known() {
			out = append(out, sum)
		}
	})
	return out
}

// record is what is trusted in one project, as it is kept in the data folder. What is
// not in the document just now stays in it: another branch may have it.
type record struct {
	Version int `json:"version"`
	// Folder is the project's, for people.
	Folder string `json:"folder"`
	// Trusted are hashes, the oldest first.
	Trusted []string `json:"trusted"`
}

// parseRecord reads a record. One that is damaged, or of a later version, trusts
// nothing.
func parseRecord(data []byte) record {
	var r record
	if json.Unmarshal(data, &r) != nil || r.Version != 1 {
		return record{}
	}
	return r
}

func (r *record) has() map[string]bool {
	out := make(map[string]bool, len(r.Trusted))
	for _, sum := range r.Trusted {
		out[sum] = true
	}
	return out
}

// add adds hashes, of which now are in the document, and is false if all were there. There
// are no more than limit.
func (r *record) add(now []string, limit int) (bool, error) {
	have, in, grown := r.has(), map[string]bool{}, false
	for _, sum := range now {
		if in[sum] = true; !have[sum] {
			have[sum], grown = true, true
			r.Trusted = append(r.Trusted, sum)
		}
	}
	if len(in) > limit {
		return false, fmt.Errorf("it has more than %d lines (memory.max_trusted_lines)", limit)
	}
	over := len(r.Trusted) - limit
	r.Trusted = slices.DeleteFunc(r.Trusted, func(sum string) bool {
		gone := over > 0 && !in[sum]
		if gone {
			over--
		}
		return gone
	})
	return grown, nil
}

// drop takes out what was in a document and is no longer, and is false if there was
// nothing.
func (r *record) drop(before, after []string) bool {
	n, gone := len(r.Trusted), map[string]bool{}
	for _, sum := range before {
		gone[sum] = true
	}
	for _, sum := range after {
		delete(gone, sum)
	}
	r.Trusted = slices.DeleteFunc(r.Trusted, func(sum string) bool { return gone[sum] })
	return len(r.Trusted) < n
}

var errNoRecord = errors.New("there is no data folder in which it could be noted")
