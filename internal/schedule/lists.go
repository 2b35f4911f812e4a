package schedule

import (
	"strconv"
	"strings"

	"github.com/netresearch/go-cron"
)

// Lists is the expression with nothing in it but stars and lists of numbers, which every
// reader of cron expressions takes for the same. Some know no ?, and no ranges that go
// over the end of a day, a week or a year (22-2, fri-mon).
func (t *Times) Lists() string {
	s, ok := t.next.(*cron.SpecSchedule)
	if !ok || len(s.DomConstraints) > 0 || len(s.DowConstraints) > 0 {
		return t.cron
	}
	// The highest bit says that it was a star.
	const star = 1 << 63
	var out []string
	for _, f := range []struct {
		bits uint64
		most int
	}{{s.Minute, 59}, {s.Hour, 23}, {s.Dom, 31}, {s.Month, 12}, {s.Dow, 6}} {
		if f.bits&star != 0 {
			out = append(out, "*")
			continue
		}
		var list []string
		for i := range f.most + 1 {
			if f.bits&(1<<i) != 0 {
				list = append(list, strconv.Itoa(i))
			}
		}
		out = append(out, strings.Join(list, ","))
	}
	return strings.Join(out, " ")
}
