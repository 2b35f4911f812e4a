package form

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"agentd/fault"
)

// The lists that have cursors. A cursor begins with its list's letter and ends in
// a checksum: one of another list, or a text that never was one, must not be taken
// for a place, because the page after it would look like an answer.
const (
	RunList       = "r"
	SessionList   = "s"
	InterruptList = "i"
	PotList       = "b"
	ScheduleList  = "p"
)

// Cursor is the place in a list after the row with these numbers.
func Cursor(list string, place ...int64) string {
	s := list
	for i, n := range place {
		if i > 0 {
			s += "."
		}
		s += strconv.FormatInt(n, 36)
	}
	return fmt.Sprintf("%s-%08x", s, crc32.ChecksumIEEE([]byte(s)))
}

// PlaceOf fills in the numbers of a cursor of the list. The error is a
// *fault.Error of kind Invalid.
func PlaceOf(list, c string, place ...*int64) error {
	body, _, _ := strings.Cut(strings.TrimPrefix(c, list), "-")
	parts := strings.Split(body, ".")
	if len(parts) != len(place) {
		return BadCursor(c)
	}
	numbers := make([]int64, len(parts))
	for i := range parts {
		numbers[i], _ = strconv.ParseInt(parts[i], 36, 64) // what is wrong here does not match below
	}
	if Cursor(list, numbers...) != c {
		return BadCursor(c)
	}
	for i := range place {
		*place[i] = numbers[i]
	}
	return nil
}

// BadCursor is the error of a text that is no cursor of its list.
func BadCursor(c string) error {
	return &fault.Error{Kind: fault.Invalid, Field: "cursor", Err: fmt.Errorf("%q is not a cursor of this list", c),
		Hint: "use the cursor that the page before returned, or none"}
}
