package check

import (
	"fmt"

	"agentd/internal/store"
)

// tree: entries that no run wrote (of forks, of files, of people) were written with
// all that is ahead of them, so none of them lacks its parent. Results of a run may come
// ahead of theirs.
func (k *checker) tree(where string, parents map[string]string, apart []string) {
	lost, first := 0, ""
	for _, id := range apart {
		if p := parents[id]; p == "" {
			continue
		} else if _, there := parents[p]; there && p != id {
			continue
		}
		if lost++; first == "" {
			first = id
		}
	}
	if lost > 0 {
		k.found(store.Finding{Check: "tree", Severity: store.SeverityWarning, Where: where,
			What:   fmt.Sprintf("%d entries have lost the one ahead of them, the first is %s: nothing can go on from there", lost, first),
			Advice: "Restore the file from a backup if that way of the conversation matters; the others go on."}, "")
	}
}
