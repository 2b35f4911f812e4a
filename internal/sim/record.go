package sim

import (
	"strconv"
	"sync"

	"github.com/tidwall/gjson"

	"agentd/model/script"
)

// maxRecorded bounds the bytes of recorded bodies.
const maxRecorded = 64 << 20

// recorder keeps the newest requests. Headers are not kept: they hold keys.
type recorder struct {
	mu      sync.Mutex
	max     int
	next    int // number of the next request, from 1 when asked
	size    int
	kept    []recorded
	dropped int
}

type recorded struct {
	n                  int
	method, path, body string
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next, r.size, r.kept, r.dropped = 0, 0, nil, 0
}

func (r *recorder) add(method, path, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	r.kept = append(r.kept, recorded{r.next, method, path, body})
	r.size += len(body)
	for len(r.kept) > r.max || r.size > maxRecorded && len(r.kept) > 1 {
		r.size -= len(r.kept[0].body)
		r.kept[0] = recorded{}
		r.kept = r.kept[1:]
		r.dropped++
	}
}

// appendTo appends the answer to GET /requests. A body that is not JSON appears as
// a string.
func (r *recorder) appendTo(b []byte) []byte {
	r.mu.Lock()
	kept, dropped := append([]recorded(nil), r.kept...), r.dropped
	r.mu.Unlock()
	b = append(b, `{"requests":[`...)
	for i, rec := range kept {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"n":`...)
		b = strconv.AppendInt(b, int64(rec.n), 10)
		b = script.AppendQuote(append(b, `,"method":`...), rec.method)
		b = script.AppendQuote(append(b, `,"path":`...), rec.path)
		b = append(b, `,"body":`...)
		if gjson.Valid(rec.body) {
			b = append(b, rec.body...)
		} else {
			b = script.AppendQuote(b, rec.body)
		}
		b = append(b, '}')
	}
	b = append(b, `],"dropped":`...)
	return append(strconv.AppendInt(b, int64(dropped), 10), '}')
}
