package form

import (
	"testing"

	"agentd/fault"
)

// A text is a cursor only if the store made it, whatever it looks like.
func FuzzCursor(f *testing.F) {
	for _, c := range []string{"", "zzz", "r1-0", Cursor(RunList, 7), Cursor(SessionList, 1_700_000_000_000, 9), Cursor(InterruptList, -1)} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, c string) {
		a, b := int64(-7), int64(-8)
		for _, list := range []string{RunList, SessionList, InterruptList} {
			place := []*int64{&a}
			if list == SessionList {
				place = append(place, &b)
			}
			switch err := PlaceOf(list, c, place...); {
			case err != nil && fault.KindOf(err) != fault.Invalid:
				t.Error(err)
			case err == nil && list == SessionList && Cursor(list, a, b) != c, err == nil && list != SessionList && Cursor(list, a) != c:
				t.Errorf("%q was taken for a cursor of list %s", c, list)
			}
		}
	})
}
