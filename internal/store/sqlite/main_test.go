package sqlite

import (
	"fmt"
	"os"
	"testing"
)

// childEnv makes the test binary the process that TestKill kills: the path of
// the store it writes to.
const childEnv = "AGENTD_TEST_STORE_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := writeUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // it never ends by itself
	}
	os.Exit(m.Run())
}
