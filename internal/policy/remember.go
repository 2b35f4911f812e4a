package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"agentd/tool"
)

// Pattern says which calls of a tool an approval holds for that a person asked to
// be remembered. It is as narrow as the call that was approved lets it be.
type Pattern struct {
	// Source is where the tool comes from: one of another server that has the same
	// name, in another run of the session or in a subagent, is another tool.
	Source string `json:"source,omitempty"`
	// Args are the arguments that must be the same, as canonical JSON.
	Args json.RawMessage `json:"args"`
	// Key is the argument that holds a command, and Command its words; then Args
	// are the other arguments. More: further words may follow that are no options.
	Key     string   `json:"key,omitempty"`
	Command []string `json:"command,omitempty"`
	More    bool     `json:"more,omitempty"`
}

// Remembered is a pattern of a tool that a person allowed.
type Remembered struct {
	ID, Tool string
	Pattern  Pattern
}

// String describes the pattern for people.
func (p *Pattern) String() string {
	s := string(p.Args)
	if p.Key != "" {
		s = strings.Join(p.Command, " ")
		if p.More {
			s += " …"
		}
		if string(p.Args) != "{}" {
			s += " with " + string(p.Args)
		}
	}
	return s
}

// Recall finds what a person allowed before that covers a call. It is asked where
// the rules would ask a person, and only then.
func Recall(rules []Remembered, spec *tool.Spec, args json.RawMessage) (Verdict, *Remembered) {
	for i := range rules {
		if r := &rules[i]; r.Tool == spec.Name && r.Pattern.covers(spec, args) {
			return Verdict{Reason: "a person allowed it for this session (" + r.ID + ")"}, r
		}
	}
	return Verdict{}, nil
}

// Remember derives the pattern of an approved call. The error says why such calls
// are never remembered: what deletes or is dangerous, destructive commands, and
// commands of more than plain words are a person's decision each time.
func Remember(spec *tool.Spec, args json.RawMessage) (Pattern, error) {
	for _, class := range []string{"delete", "dangerous"} {
		// A shell is dangerous for what its commands may be, and those are looked at.
		if slices.Contains(spec.Classes, class) && (class == "delete" || !slices.Contains(spec.Classes, "shell")) {
			return Pattern{}, fmt.Errorf("%s calls are never remembered (%s)", class, spec.Name)
		}
	}
	fields, err := object(args)
	if err != nil {
		return Pattern{}, err
	}
	key, text, isCommand := commandOf(fields)
	if (key != "" || slices.Contains(spec.Classes, "shell")) && !isCommand {
		return Pattern{}, fmt.Errorf("%s runs commands, and which one can not be told from its arguments", spec.Name)
	}
	p := Pattern{Source: spec.Source, Key: key}
	if isCommand {
		if p.Command, err = plain(text); err != nil {
			return Pattern{}, err
		}
		p.More = extends(p.Command)
	} else if len(spec.RememberBy) > 0 {
		for name := range fields {
			if !slices.Contains(spec.RememberBy, name) {
				delete(fields, name)
			}
		}
	}
	delete(fields, key)
	p.Args, err = tool.EncodeJSON(fields)
	return p, err
}

// covers is whether a call is one of those that the pattern was derived for. The
// call must be one that may be remembered itself: tools and lists change.
func (p *Pattern) covers(spec *tool.Spec, args json.RawMessage) bool {
	this, err := Remember(spec, args)
	if err != nil || this.Source != p.Source || this.Key != p.Key || !bytes.Equal(this.Args, p.Args) {
		return false
	}
	n := len(p.Command)
	if len(this.Command) < n || !slices.Equal(this.Command[:n], p.Command) {
		return false
	}
	rest := this.Command[n:]
	return len(rest) == 0 || p.More && !slices.ContainsFunc(rest, option)
}

func option(word string) bool { return strings.HasPrefix(word, "-") }

func object(args json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil || v == nil {
		return nil, errors.New("the arguments are not an object")
	}
	return v, nil
}

// commandOf finds a command among arguments. ok is whether it is a text: what a
// list or an object of words does is for nobody here to say.
func commandOf(fields map[string]any) (key, text string, ok bool) {
	for _, key := range []string{"command", "cmd"} {
		if v, has := fields[key]; has {
			text, ok = v.(string)
			return key, text, ok
		}
	}
	return "", "", false
}

// plain gives the words of a command that is nothing but a program and its
// arguments, and neither destructive nor able to run others.
func plain(command string) ([]string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9_./:@%+, =-]+$`).MatchString(command) {
		return nil, errors.New("commands with quotes, pipes, substitutions or the like are never remembered")
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, errors.New("there is no command")
	}
	name := strings.TrimSuffix(strings.ToLower(path.Base(words[0])), ".exe")
	if strings.Contains(words[0], "=") || runsOthers(name) {
		return nil, fmt.Errorf("%s runs other commands; such calls are never remembered", words[0])
	}
	for i, w := range words {
		w = strings.ToLower(w)
		if i == 0 {
			w = name
		}
		if destructive(w) {
			return nil, fmt.Errorf("%q may destroy something; such commands are never remembered", command)
		}
	}
	return words, nil
}

// runsOthers is whether a program's arguments are a program.
func runsOthers(name string) bool {
	for _, prefix := range []string{"python", "perl", "ruby", "php", "lua", "node"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "fish", "ksh", "csh", "tcsh", "pwsh", "powershell", "cmd", "busybox", "deno", "bun",
		"awk", "gawk", "mawk", "sed", "xargs", "env", "eval", "exec", "command", "builtin", "source", ".", "nohup", "time", "timeout", "nice", "setsid",
		"watch", "parallel", "find", "ssh", "sudo", "su", "doas", "crontab", "at", "batch", "chroot", "unshare", "nsenter", "script", "tclsh", "osascript", "npx", "bunx", "uvx"}, name)
}

// destructive is whether a word of a command, its program included, is known for
// destroying things. It errs on the side of asking again.
func destructive(word string) bool {
	for _, prefix := range []string{"mkfs", "--force", "--delete", "--remove", "--purge", "--prune", "--hard", "--exec", "-exec", "--no-preserve",
		"--discard", "--mirror", "--request=delete", "-xdelete", "remove-", "clear-", ":"} {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	if strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "f") && len(word) <= 4 {
		return true // -f, -rf, -xdf
	}
	return strings.HasPrefix(word, "+") || slices.Contains([]string{"rm", "rmdir", "unlink", "shred", "dd", "fdisk", "parted", "wipefs", "truncate", "mv", "chmod", "chown",
		"kill", "killall", "pkill", "shutdown", "reboot", "halt", "poweroff", "format", "del", "erase", "rd", "reset", "clean", "checkout",
		"restore", "rebase", "delete", "destroy", "drop", "purge", "prune", "uninstall", "remove", "wipe", "clear", "flush", "flushall", "filter-branch",
		"-delete", "-d", "tee"}, word)
}

// extends is whether other arguments may follow what was approved: of commands
// that only look, as long as they are no options.
func extends(words []string) bool {
	if len(words) < 2 || slices.ContainsFunc(words, option) {
		return false
	}
	return slices.Contains([]string{"git status", "git diff", "git log", "git show", "git blame", "git ls-files", "go test", "go vet", "go build", "go list",
		"go doc", "cargo test", "cargo check", "kubectl get", "kubectl describe", "kubectl logs", "docker ps", "docker logs", "docker images"},
		words[0]+" "+words[1])
}
