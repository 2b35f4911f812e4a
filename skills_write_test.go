package agentd

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"agentd/internal/profile"
	"agentd/internal/skill"
)

// Each run's agent has a writer of its own. Of two that write a skill of the same name at
// once, one does, and the file is whole.
func TestRunsThatWriteTheSameSkill(t *testing.T) {
	l := &learning{project: t.TempDir()}
	p := &profile.Profile{}
	p.Skills.Create, p.Skills.Project = true, true
	for i := range 100 {
		var wg sync.WaitGroup
		var files [4]string
		texts := [len(files)]string{}
		for j := range files {
			w := l.writer(p)
			texts[j] = strings.Repeat(fmt.Sprintf("Step %d. ", j), 200)
			wg.Go(func() {
				files[j], _, _ = w.Write(&skill.Draft{Kind: "project", Name: fmt.Sprint("s", i), Description: "d", Instructions: texts[j]}, "a test", skill.Limits{})
			})
		}
		wg.Wait()
		wrote := -1
		for j, file := range files {
			if file == "" {
				continue
			}
			if wrote >= 0 {
				t.Fatalf("%d and %d wrote %s", wrote, j, file)
			}
			wrote = j
			if data, err := os.ReadFile(file); err != nil || !strings.HasSuffix(strings.TrimSpace(string(data)), strings.TrimSpace(texts[j])) {
				t.Fatalf("%v: %.200s", err, data)
			}
		}
		if wrote < 0 {
			t.Fatal("nobody wrote it")
		}
	}
}
