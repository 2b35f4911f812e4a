package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentd/bench/worker"
)

// scripts are what the simulated models say, by model id.
func scripts() map[string]string {
	return map[string]string{
		worker.LoopModel: fmt.Sprintf(`models: [%s]
turns:
  - repeat: %d
    tool_calls: [{name: echo, arguments: {text: "step {{.Step}}"}}]
  - text: "All of it was echoed."
`, worker.LoopModel, worker.Steps),
		worker.StreamModel: fmt.Sprintf(`models: [%s]
latency: {size: 8}
turns:
  - text: %q
`, worker.StreamModel, strings.Repeat("a word, ", worker.Chunks)),
		// 200 chunks over four seconds.
		"slow": fmt.Sprintf(`models: [slow]
latency: {first: 50ms, chunk: 20ms, size: 8}
turns:
  - text: %q
`, strings.Repeat("a word, ", 200)),
		"ask": `models: [ask]
turns:
  - tool_calls: [{name: ask_user_question, arguments: {question: "Shall I go on?"}}]
  - text: "As you wish."
`,
		"glob": fmt.Sprintf(`models: [glob]
turns:
  - repeat: %d
    tool_calls: [{name: glob, arguments: {pattern: "*.none"}}]
  - text: "There is none."
`, worker.Steps),
		"long": `models: [long]
turns:
  - repeat: 200
    tool_calls: [{name: echo, arguments: {text: "step {{.Step}}"}}]
  - text: "All of it was echoed."
`,
		hundred: fmt.Sprintf(`models: [%s]
turns:
  - repeat: %d
    tool_calls: [{name: echo, arguments: {text: "step {{.Step}}"}}]
  - text: "All of it was echoed."
`, hundred, hundredSteps),
		"wide": `models: [wide]
turns:
  - repeat: 200
    tool_calls: [{name: lookup, arguments: {id: "record-{{.Step}}"}}]
  - text: "All of it was looked up."
`,
		"brief": `models: [brief]
turns:
  - text: "Good day."
`,
		// What is done beside the call is not waited for, as with any model that thinks.
		"thoughtful": `models: [thoughtful]
latency: {first: 20ms}
turns:
  - text: "Good day."
`,
	}
}

// builtin are the tools of a script's profile.
var builtin = map[string]string{worker.LoopModel: "echo", worker.StreamModel: "", "slow": "", "ask": "ask_user_question",
	"glob": "glob", "tick": "", "long": "echo", hundred: "echo", "wide": "lookup", "brief": "", "thoughtful": ""}

// prepare writes the scripts.
func (b *bench) prepare() error {
	dir := filepath.Join(b.dir, "scripts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range scripts() {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("name: "+name+"\n"+text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// folder makes an empty folder.
func (b *bench) folder(name string) (string, error) {
	b.folders++
	dir := filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, b.folders))
	return dir, os.MkdirAll(dir, 0o700)
}

// configs writes a configuration with a profile for each of the models, at the
// simulator at base, or by the scripted model inside the process if base is empty.
func (b *bench) configs(base string, models ...string) (string, error) {
	dir, err := b.folder("configs")
	if err != nil {
		return "", err
	}
	for _, sub := range []string{"agents", "mcp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp", "servers.yaml"), []byte("servers: {}\n"), 0o600); err != nil {
		return "", err
	}
	for _, m := range models {
		p := fmt.Sprintf("profile_name: %s\nprofile_version: \"1.0.0\"\nsystem_prompt: %q\ntools: {builtin: [%s]}\napproval_mode: never\n"+
			"max_steps: 1000\nmax_tool_calls: 1000\n", m, worker.System, builtin[m])
		if base == "" {
			p += fmt.Sprintf("primary_model: {provider: script, model: %s, script: %q}\n", m, filepath.Join("scripts", m+".yaml"))
		} else {
			p += fmt.Sprintf("primary_model: {provider: openai, model: %s, base_url: %q}\n", m, base+"/v1")
		}
		if err := os.WriteFile(filepath.Join(dir, "agents", m+".yaml"), []byte(p), 0o600); err != nil {
			return "", err
		}
	}
	if base == "" {
		return dir, os.CopyFS(filepath.Join(dir, "scripts"), os.DirFS(filepath.Join(b.dir, "scripts")))
	}
	return dir, nil
}
