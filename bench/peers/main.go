// Command peers drives another agent runtime through the same loop, as one of
// the processes that the benchmark compares.
//
// It is eino's ReAct agent with its OpenAI model, streaming, as its documentation
// shows it. A checker of streamed tool calls that reads on until there is content
// or a call is needed because the first chunk has neither; the step limit is raised.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"agentd/bench/worker"
)

func main() {
	base := flag.String("base", "", "base URL of the simulator, ending in /v1")
	model := flag.String("model", worker.LoopModel, "model")
	flag.Parse()
	if err := run(context.Background(), *base, *model); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

type echoArgs struct {
	Text string `json:"text" jsonschema_description:"The text to give back."`
}

func run(ctx context.Context, base, model string) error {
	// Go's default client keeps two idle connections per host, which would make
	// 64 runs at once a test of TCP.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1024
	chat, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{APIKey: "bench", BaseURL: base, Model: model,
		HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return err
	}
	echo, err := utils.InferTool(worker.ToolName, worker.ToolAbout, func(_ context.Context, a echoArgs) (string, error) { return a.Text, nil })
	if err != nil {
		return err
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: chat, MaxStep: 1000, StreamToolCallChecker: calls,
		ToolsConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{echo}}})
	if err != nil {
		return err
	}
	return worker.Serve(ctx, os.Stdin, os.Stdout, worker.Program{Run: func(ctx context.Context) error {
		out, err := agent.Stream(ctx, []*schema.Message{schema.SystemMessage(worker.System), schema.UserMessage(worker.User)})
		if err != nil {
			return err
		}
		defer out.Close()
		n := 0
		for {
			m, err := out.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			n += len(m.Content)
		}
		if n == 0 {
			return errors.New("the run ended without an answer")
		}
		return nil
	}})
}

func calls(_ context.Context, s *schema.StreamReader[*schema.Message]) (bool, error) {
	defer s.Close()
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if len(m.ToolCalls) > 0 {
			return true, nil
		}
		if m.Content != "" {
			return false, nil
		}
	}
}
