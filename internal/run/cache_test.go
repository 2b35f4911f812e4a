package run

import "testing"

// TestAReadBesideAChangeIsNotRemembered: a call that was to get an earlier result and
// was made after all may have read what a call beside it changed meanwhile.
func TestAReadBesideAChangeIsNotRemembered(t *testing.T) {
	p := play(t, `
start prompt=u1
reply a:read
allow a effect=read key=k1
done a "old"
reply b:read c:write
allow b effect=read key=k1
allow c effect=once
done c "written"
done b "old, or new"
reply d:read
allow d effect=read key=k1
`)
	if len(p.s.Calls) != 1 || p.s.Calls[0].Cached != "" {
		t.Errorf("%+v", p.s.Calls)
	}
}
