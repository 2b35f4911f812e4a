//go:build unix

package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// chat is a client of the OpenAI-compatible API: it streams or not, some leave in
// the middle, and their sessions are ephemeral. Who loses its server asks again
// under the same key, and gets one answer.
func (p *person) chat(ctx context.Context) error {
	p.n++
	stream, leaves := p.rng.IntN(2) == 0, p.rng.IntN(4) == 0
	kind := directives[p.rng.IntN(2)] // plain or flaky
	body, err := json.Marshal(map[string]any{"model": []string{"worker", "other"}[p.rng.IntN(2)], "stream": stream,
		"messages": []map[string]string{{"role": "user", "content": "plain earlier"}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": fmt.Sprintf("%s %s-%d", kind.kind, p.name, p.n)}}})
	if err != nil {
		return err
	}
	return p.w.retry(ctx, "a chat", func(s *server) (bool, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			return false, err
		}
		req.Header.Set("Authorization", "Bearer "+p.w.key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", fmt.Sprintf("chat-%s-%d", p.name, p.n))
		resp, err := s.http.Do(req)
		if err != nil {
			return false, nil
		}
		defer resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusServiceUnavailable:
			return false, nil
		case resp.StatusCode != http.StatusOK:
			b, _ := io.ReadAll(resp.Body)
			return false, fmt.Errorf("chat: %s: %s", resp.Status, b)
		case !stream:
			var out struct {
				Choices []struct{ Message struct{ Content string } }
			}
			if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
				return false, nil // it died
			}
			if len(out.Choices) != 1 || out.Choices[0].Message.Content == "" {
				return false, fmt.Errorf("chat: %+v", out)
			}
			return true, nil
		}
		var text strings.Builder
		n := 0
		for in := bufio.NewScanner(resp.Body); in.Scan(); n++ {
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			if leaves && n > 8 {
				return true, nil
			}
			if data == "[DONE]" {
				// A once call that a kill cut off is a person's matter, and the answer says so.
				if !strings.HasSuffix(text.String(), kind.want) && !strings.Contains(text.String(), "waits for a person") {
					return false, fmt.Errorf("chat: %q, want %q", text.String(), kind.want)
				}
				return true, nil
			}
			if !ok {
				continue
			}
			var chunk struct {
				Choices []struct{ Delta struct{ Content string } }
			}
			if err := json.Unmarshal([]byte(data), &chunk); err != nil {
				return false, fmt.Errorf("chat: %q: %w", data, err)
			}
			for _, c := range chunk.Choices {
				text.WriteString(c.Delta.Content)
			}
		}
		return false, nil // it died
	})
}
