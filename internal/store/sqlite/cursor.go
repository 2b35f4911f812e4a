package sqlite

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
	runList       = "r"
	sessionList   = "s"
	interruptList = "i"
	potList       = "b"
)

// cursor is the place in a list after the row with these numbers.
func cursor(list string, place ...int64) string {
	s := list
	for i, n := range place {
		if i > 0 {
			s += "."
		}
		s += strconv.FormatInt(n, 36)
	}
	return fmt.Sprintf("%s-%08x", s, crc32.ChecksumIEEE([]byte(s)))
}

// placeOf fills in the numbers of a cursor of the list. The error is a
// *fault.Error of kind Invalid.
func placeOf(list, c string, place ...*int64) error {
	body, _, _ := strings.Cut(strings.TrimPrefix(c, list), "-")
	parts := strings.Split(body, ".")
	if len(parts) != len(place) {
		return badCursor(c)
	}
	numbers := make([]int64, len(parts))
	for i := range parts {
		numbers[i], _ = strconv.ParseInt(parts[i], 36, 64) // what is wrong here does not match below
	}
	if cursor(list, numbers...) != c {
		return badCursor(c)
	}
	for i := range place {
		*place[i] = numbers[i]
	}
	return nil
}

func badCursor(c string) error {
	return &fault.Error{Kind: fault.Invalid, Field: "cursor", Err: fmt.Errorf("%q is not a cursor of this list", c),
		Hint: "use the cursor that the page before returned, or none"}
}
