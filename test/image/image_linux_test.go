package image

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentd/client"
	"agentd/internal/store/postgres/pgtest"
	"agentd/message"
)

// rootVariable names the root folder to the process that goes into it.
const rootVariable = "AGENTD_IMAGE_ROOT"

// nobody is the user of the image.
const nobody = 65532

func TestMain(m *testing.M) {
	if root := os.Getenv(rootVariable); root != "" {
		fmt.Fprintln(os.Stderr, enter(root, os.Args[1:]))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// enter becomes agentd in the image. It returns only what went wrong.
func enter(root string, args []string) error {
	if err := syscall.Chroot(root); err != nil {
		return err
	}
	if err := os.Chdir("/srv/agentd"); err != nil { // WORKDIR
		return err
	}
	if os.Getenv("AGENTD_IMAGE_USER") != "" {
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setgid(nobody); err != nil {
			return err
		}
		if err := syscall.Setuid(nobody); err != nil {
			return err
		}
	}
	env := []string{"XDG_DATA_HOME=/var/lib"} // ENV
	for _, name := range []string{"AGENTD_STORE", "OPENAI_API_KEY"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return syscall.Exec("/agentd", append([]string{"/agentd"}, args...), env)
}

// image is the root folder of a container.
type image struct {
	t    *testing.T
	root string
	// binds are mounted into it: from, to, ro or rw.
	binds [][3]string
	env   []string
}

// build makes the binary as the Dockerfile does, but for its debugging information.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agentd")
	cmd := exec.Command("go", "build", "-o", path, "agentd/cmd/agentd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// newImage has what the last stage of the Dockerfile copies.
func newImage(t *testing.T, binary string) *image {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{"etc/ssl/certs", "var/lib/agentd", "srv/agentd/configs/agents", "srv/agentd/workspace"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(binary, filepath.Join(root, "agentd")); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(root); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if os.Chmod(dir, 0o755) != nil { // the way to it is not the test's alone
			break
		}
	}
	return &image{t: t, root: root}
}

func (i *image) write(path, text string) {
	i.t.Helper()
	if err := os.WriteFile(filepath.Join(i.root, path), []byte(text), 0o644); err != nil {
		i.t.Fatal(err)
	}
}

// command runs agentd in the image, in a mount namespace of its own that ends with it.
func (i *image) command(ctx context.Context, args ...string) *exec.Cmd {
	script := `mount --bind "$0" "$0"; `
	for _, b := range i.binds {
		script += fmt.Sprintf(`mount --bind '%s' "$0%s"; `, b[0], b[1])
		if b[2] == "ro" {
			script += fmt.Sprintf(`mount -o remount,bind,ro "$0%s"; `, b[1])
		}
	}
	script += `mount -o remount,bind,ro "$0"; exec "$@"`
	self, err := os.Executable()
	if err != nil {
		i.t.Fatal(err)
	}
	unshare := []string{"--mount"}
	env := append(os.Environ(), rootVariable+"="+i.root)
	if os.Getuid() == 0 {
		env = append(env, "AGENTD_IMAGE_USER=1")
	} else {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	cmd := exec.CommandContext(ctx, "unshare", append(append(unshare, "sh", "-euc", script, i.root, self), args...)...)
	cmd.Env = append(env, i.env...)
	return cmd
}

// run runs a command to its end.
func (i *image) run(args ...string) string {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), time.Minute)
	defer cancel()
	cmd := i.command(ctx, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		i.t.Fatalf("agentd %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), complaints.String())
	}
	return out.String()
}

// locked is a buffer for two.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *locked) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// start starts a process that stays; stop ends it as a supervisor does.
func (i *image) start(args ...string) (stop func()) {
	i.t.Helper()
	var log locked
	cmd := i.command(context.WithoutCancel(i.t.Context()), args...)
	cmd.Stderr, cmd.Stdout = &log, &log
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				i.t.Errorf("agentd %s: %v\n%s", strings.Join(args, " "), err, log.String())
			}
		})
	}
	i.t.Cleanup(stop)
	return stop
}

// port is one that nobody uses.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

// ends waits for a run.
func ends(t *testing.T, c *client.Client, profile string) *client.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := c.Start(ctx, client.StartRequest{Profile: profile, Input: []message.Block{message.Text("Have a look around")}, Mode: "autonomous"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Watch(ctx, r.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if r, err = c.Run(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImage(t *testing.T) {
	binary := build(t)
	t.Run("the binary is static", func(t *testing.T) { isStatic(t, binary) })
	t.Run("nodes need nothing else", func(t *testing.T) { nodesNeedNothingElse(t, binary) })
	t.Run("a server writes its volume alone", func(t *testing.T) { serverWritesItsVolumeAlone(t, binary) })
}

func isStatic(t *testing.T, binary string) {
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a %v: it needs a loader", p.Type)
		}
	}
	if libs, err := f.ImportedLibraries(); err == nil && len(libs) > 0 {
		t.Errorf("it needs %v", libs)
	}
}

// An API node and a worker on PostgreSQL need nothing that could be written to, and find the authorities.
func nodesNeedNothingElse(t *testing.T, binary string) {
	pg := pgtest.Start(t)
	if err := os.Chmod(filepath.Dir(pg.Socket()), 0o755); err != nil {
		t.Fatal(err)
	}
	i := newImage(t, binary)
	// A model server whose certificate nobody but this image's file of authorities knows.
	model := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"who are you"}}`))
	}))
	model.Config.ErrorLog = log.New(io.Discard, "", 0) // it is refused once
	model.StartTLS()
	defer model.Close()
	api, worker := port(t), port(t)
	i.write("srv/agentd/configs/agentd.yaml", "addr: 127.0.0.1:"+api+"\nworkspace: /srv/agentd/workspace\n"+
		"schedules: [{name: s, cron: '0 3 * * *', time_zone: Europe/Berlin, profile: demo, input: x}]\n")
	i.write("srv/agentd/configs/agents/demo.yaml", "profile_name: demo\nprimary_model: {provider: script, model: m}\ntools: {builtin: [workspace]}\n")
	i.write("srv/agentd/configs/agents/remote.yaml", "profile_name: remote\nprimary_model: {provider: openai, model: m, base_url: '"+model.URL+"/v1'}\nretry: {enabled: false}\nretry_failed_steps: 0\n")
	if err := os.Mkdir(filepath.Join(i.root, "pg"), 0o755); err != nil {
		t.Fatal(err)
	}
	i.binds = [][3]string{{filepath.Dir(pg.Socket()), "/pg", "ro"}}
	i.env = []string{"AGENTD_STORE=postgres://agentd@/postgres?host=/pg", "OPENAI_API_KEY=x"}
	var key client.Key
	if err := json.Unmarshal([]byte(i.run("keys", "create", "--scope", "run,read,answer,admin")), &key); err != nil {
		t.Fatal(err)
	}
	c, err := client.New("http://127.0.0.1:"+api, &client.Options{Key: key.Secret})
	if err != nil {
		t.Fatal(err)
	}
	certs := func(pem string) (stop func()) {
		i.write("etc/ssl/certs/ca-certificates.crt", pem)
		stopAPI, stopWorker := i.start("serve", "--no-worker"), i.start("worker", "--addr", "0.0.0.0:"+worker)
		i.run("health", "--wait", "30s") // finds the server by agentd.yaml
		i.run("health", "--server", "http://127.0.0.1:"+worker, "--wait", "30s")
		return func() { stopWorker(); stopAPI() }
	}
	stop := certs("")
	if r := ends(t, c, "demo"); r.Status != "completed" {
		t.Errorf("%+v %+v", r, r.Error)
	}
	if r := ends(t, c, "remote"); r.Error == nil || !strings.Contains(r.Error.Message, "certificate") {
		t.Errorf("without authorities: %+v %+v", r, r.Error)
	}
	stop()
	stop = certs(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: model.Certificate().Raw})))
	if r := ends(t, c, "remote"); r.Error == nil || strings.Contains(r.Error.Message, "certificate") || !strings.Contains(r.Error.Message, "who are you") {
		t.Errorf("with authorities: %+v %+v", r, r.Error)
	}
	stop()
	i.run("doctor")
}

// A single server writes into its volume and nowhere else.
func serverWritesItsVolumeAlone(t *testing.T, binary string) {
	i := newImage(t, binary)
	volume := filepath.Join(filepath.Dir(i.root), "volume")
	if err := os.Mkdir(volume, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(volume, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	i.binds = [][3]string{{volume, "/var/lib/agentd", "rw"}}
	at := port(t)
	i.write("srv/agentd/configs/agentd.yaml", "addr: 127.0.0.1:"+at+"\n")
	i.write("srv/agentd/configs/agents/demo.yaml", "profile_name: demo\nprimary_model: {provider: script, model: m}\ntools: {builtin: [workspace]}\n")
	stop := i.start("serve")
	i.run("health", "--wait", "30s")
	c, err := client.New("http://127.0.0.1:"+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := ends(t, c, "demo"); r.Status != "completed" {
		t.Errorf("%+v %+v", r, r.Error)
	}
	stop()
	if info, err := os.Stat(filepath.Join(volume, "agentd.db")); err != nil || info.Size() == 0 {
		t.Errorf("the store: %v", err)
	}
	i.run("doctor")
}
