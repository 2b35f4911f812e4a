package memory

import (
	"fmt"
	"strings"
	"testing"

	"agentd/fault"
)

// How many lines may be trusted is a setting, and as many are read again as it can be.
func TestMoreLinesMayBeTrusted(t *testing.T) {
	const lines = 40_000
	var text strings.Builder
	for i := range lines {
		fmt.Fprint(&text, "- tea ", i, "\n")
	}
	p := newProject(t, text.String())
	for _, limit := range []int{0, lines - 1} {
		p.files.MaxTrusted = limit
		if _, err := p.Trust(t.Context(), me, nil); fault.KindOf(err) != fault.TooLarge {
			t.Errorf("%d: %v", limit, err)
		}
	}
	p.files.MaxTrusted = lines
	for _, want := range []int{lines, 0} {
		if trusted, err := p.Trust(t.Context(), me, nil); err != nil || len(trusted) != want {
			t.Errorf("%d are trusted now, not %d: %v", len(trusted), want, err)
		}
	}
}

// What is not needed makes room; what is in the document stays.
func TestTheRecordIsBounded(t *testing.T) {
	const maxTrusted = 1000
	r := record{Trusted: []string{"keep"}}
	for i := range maxTrusted - 1 {
		r.Trusted = append(r.Trusted, fmt.Sprint(i))
	}
	for i := maxTrusted; i < maxTrusted+10; i++ {
		if grown, err := r.add([]string{"keep", fmt.Sprint(i)}, maxTrusted); !grown || err != nil {
			t.Fatal(i, err)
		}
	}
	if has := r.has(); len(r.Trusted) != maxTrusted || !has["keep"] || has["0"] || !has[fmt.Sprint(maxTrusted+9)] {
		t.Error(len(r.Trusted))
	}
}
