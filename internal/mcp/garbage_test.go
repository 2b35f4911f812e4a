package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentd/fault"
)

// goish are words that only make sense to whoever reads this program.
func goish(text string) bool {
	for _, w := range []string{"unmarshal", "Go ", "mcp.", "struct", "json:", "nil"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func TestGarbageIsSaidInWords(t *testing.T) {
	for _, mode := range []string{"wrong result", "wrong content", "unknown content", "content is null", "null result", "text as result"} {
		t.Run(mode, func(t *testing.T) {
			cfg, _ := child(t, mode)
			tools, _ := one(t, cfg, nil)
			r, err := tools["act"].Run(background(t), call(`{}`))
			if err == nil {
				t.Fatalf("it counts as a success: %+v", r)
			}
			wantKind(t, err, fault.Unavailable, `server "srv"`, "act", "not the result of a tool")
			if goish(err.Error()) {
				t.Errorf("the model would read: %v", err)
			}
		})
	}
	t.Run("the tools", func(t *testing.T) {
		cfg, _ := child(t, "wrong list")
		_, problems := manage(t, map[string]ServerConfig{"srv": cfg}, nil).Tools(background(t), []string{"srv"})
		if len(problems) != 1 || goish(problems[0].Err.Error()) || !strings.Contains(problems[0].Err.Error(), "list of tools") {
			t.Errorf("%+v", problems)
		}
	})
}

func TestGarbageOverHTTPIsSaidInWords(t *testing.T) {
	f := newFront(t, handlerOf(realServer(t), nil))
	tools, _ := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocolLegacy}, nil)
	for _, result := range []string{`null`, `"done"`, `{"content":"x"}`} {
		for kind, form := range map[string]string{"application/json": "%", "text/event-stream": "data: %\n\n"} {
			f.onCall(func(w http.ResponseWriter, id json.RawMessage) {
				w.Header().Set("Content-Type", kind)
				io.WriteString(w, strings.Replace(form, "%", `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+result+`}`, 1))
			})
			_, err := tools["hello"].Run(background(t), call(`{}`))
			wantKind(t, err, fault.Unavailable, "not the result of a tool")
			if err != nil && goish(err.Error()) {
				t.Errorf("the model would read: %v", err)
			}
		}
	}
}
