package openai

import "strings"

// stops ends a text at a stop text, which Responses can not be asked for: what comes
// after it is read, because it is paid, and left out. Text that may be the beginning of
// a stop text is held back.
type stops struct {
	texts []string
	held  string
	hit   bool
}

func newStops(texts []string) stops {
	var s stops
	for _, t := range texts {
		if t != "" {
			s.texts = append(s.texts, t)
		}
	}
	return s
}

// next takes a piece of text and returns what can be given out.
func (s *stops) next(piece string) string {
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

// rest is what was held back and turned out to be no stop text.
func (s *stops) rest() string {
	rest := s.held
	s.held = ""
	return rest
}
