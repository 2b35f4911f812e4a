package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"agentd/bench/worker"
)

// bare sends recorded requests again and reads what comes, without looking at
// it: what the network and the simulator take.
func bare(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bare", flag.ContinueOnError)
	base := f.String("base", "", "base URL of the simulator")
	file := f.String("requests", "", "JSON list of request bodies")
	if err := f.Parse(args); err != nil {
		return err
	}
	raw, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	var bodies []json.RawMessage
	if err := json.Unmarshal(raw, &bodies); err != nil {
		return err
	}
	c := client()
	return worker.Serve(ctx, os.Stdin, os.Stdout, worker.Program{Run: func(ctx context.Context) error {
		for _, body := range bodies {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, *base+"/v1/chat/completions", bytes.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := c.Do(req)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != http.StatusOK {
				return fmt.Errorf("the simulator answered %s: %v", res.Status, err)
			}
		}
		return nil
	}})
}
