package wire

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"agentd/fault"
)

// ReadFile reads a body of one JSON value a line; limit is its size in bytes, and hint
// what people can do about one that is larger. The rest is as in [ReadBody].
func ReadFile(w http.ResponseWriter, r *http.Request, l Limits, limit int64, hint string) ([]byte, error) {
	plain := *r
	if header := r.Header.Get("Content-Type"); header != "" {
		t, _, err := mime.ParseMediaType(header)
		switch {
		case err == nil && (t == "application/x-ndjson" || t == "application/jsonl" || t == "application/json" || strings.HasSuffix(t, "+json")):
		default:
			return nil, &StatusError{Status: http.StatusUnsupportedMediaType, Err: &fault.Error{Kind: fault.Invalid, Field: "Content-Type",
				Err: fmt.Errorf("the file must be JSON lines, not %q", Clip(header, 80)), Hint: "Send Content-Type: application/x-ndjson."}}
		}
		plain.Header = r.Header.Clone()
		plain.Header.Del("Content-Type")
	}
	l.MaxBody = limit
	body, err := ReadBody(w, &plain, l)
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.TooLarge {
		f.Hint = hint
	}
	return body, err
}
