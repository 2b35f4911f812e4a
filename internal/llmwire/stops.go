package llmwire

import "strings"

// Stops ends a text at a stop text that a provider can not be asked for: what comes
// after it is read, because it is paid, and left out. Text that may be the beginning of
// a stop text is held back. The zero value ends nothing.
type Stops struct {
	texts []string
	held  string
	hit   bool
}

// NewStops returns what ends a text at the first of these that is in it.
func NewStops(texts []string) Stops {
	var s Stops
	for _, t := range texts {
		if t != "" {
			s.texts = append(s.texts, t)
		}
	}
	return s
}

// Any reports whether there is a stop text.
func (s *Stops) Any() bool { return len(s.texts) > 0 }

// Hit reports whether one was found: what comes now is left out.
func (s *Stops) Hit() bool { return s.hit }

// Holds reports whether text is held back.
func (s *Stops) Holds() bool { return s.held != "" }

// Next takes a piece of text and returns what can be given out.
func (s *Stops) Next(piece string) string {
	if s.hit {
		return ""
	}
	all := s.held + piece
	end := -1
	for _, t := range s.texts {
		if at := strings.Index(all, t); at >= 0 && (end < 0 || at < end) {
			end = at
		}
	}
	if end >= 0 {
		s.hit, s.held = true, ""
		return all[:end]
	}
	keep := 0
	for _, t := range s.texts {
		for n := min(len(t)-1, len(all)); n > keep; n-- {
			if strings.HasSuffix(all, t[:n]) {
				keep = n
				break
			}
		}
	}
	s.held = all[len(all)-keep:]
	return all[:len(all)-keep]
}

// Rest is what was held back and turned out to be no stop text.
func (s *Stops) Rest() string {
	rest := s.held
	s.held = ""
	return rest
}

// SplitStops gives the stop texts that an API is asked for, which takes at most so many,
// and those that are left for [NewStops].
func SplitStops(texts []string, most int) (asked, own []string) {
	n := min(len(texts), most)
	return texts[:n:n], texts[n:]
}
