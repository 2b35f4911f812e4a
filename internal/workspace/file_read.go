package workspace

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the description beside this file
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"agentd/message"
	"agentd/tool"
)

//go:embed file_read.md
var readDescription string

const readSchema = `{"type":"object","properties":{` +
	`"file_path":{"type":"string","minLength":1,"description":"Path of the file, relative to the project folder or absolute inside it."},` +
	`"offset":{"type":"integer","minimum":1,"description":"First line to read, counted from 1."},` +
	`"limit":{"type":"integer","minimum":1,"description":"How many lines to read."}},` +
	`"required":["file_path"],"additionalProperties":false}`

type readArgs struct {
	Path   string `json:"file_path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

const (
	// maxLine is the bytes of a line that are shown.
	maxLine = 2000
	// maxCounted is how much of a file is read to tell its number of lines.
	maxCounted = 64 << 20
)

type readDetails struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// First and Last are the lines given; Lines is how many there are, 0 if
	// the file is too large to count.
	First int    `json:"first,omitempty"`
	Last  int    `json:"last,omitempty"`
	Lines int    `json:"lines,omitempty"`
	Type  string `json:"type,omitempty"`
}

func (w *Workspace) read(ctx context.Context, a readArgs) (tool.Result, error) {
	if a.Path == "" {
		return tool.Result{}, refuse("file_path is empty. Give the path of a file.")
	}
	rel, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := w.open(rel)
	if err != nil {
		return tool.Result{}, w.reason(a.Path, rel, err)
	}
	defer f.Close()
	if info.IsDir() {
		return tool.Result{}, refuse("%s is a folder. Use glob with path %q to see its files.", a.Path, rel)
	}
	details := readDetails{Path: rel, Bytes: info.Size()}
	in := bufio.NewReaderSize(f, 64<<10)
	head, err := in.Peek(8000)
	if err != nil && err != io.EOF {
		return tool.Result{}, refuse("%s can not be read.", a.Path)
	}
	switch kind := http.DetectContentType(head); {
	case kind == "image/png", kind == "image/jpeg", kind == "image/gif", kind == "image/webp":
		return w.image(a.Path, kind, in, details)
	case binary(head):
		return tool.Result{}, refuse("%s is a binary file (%s, %d bytes), which can not be shown as text.", a.Path, kind, info.Size())
	}
	return w.lines(ctx, a, in, details)
}

func (w *Workspace) image(name, kind string, in io.Reader, details readDetails) (tool.Result, error) {
	if details.Bytes > w.opts.MaxImageBytes {
		return tool.Result{}, refuse("%s is an image of %d bytes; at most %d can be shown.", name, details.Bytes, w.opts.MaxImageBytes)
	}
	data, err := io.ReadAll(io.LimitReader(in, w.opts.MaxImageBytes+1))
	if err != nil || int64(len(data)) > w.opts.MaxImageBytes {
		return tool.Result{}, refuse("%s can not be read, or grew while it was.", name)
	}
	details.Type = kind
	res, err := result(fmt.Sprintf("%s, %s, %d bytes:", details.Path, kind, len(data)), details)
	res.Content = append(res.Content, message.Image(base64.StdEncoding.EncodeToString(data), kind))
	return res, err
}

func (w *Workspace) lines(ctx context.Context, a readArgs, in *bufio.Reader, details readDetails) (tool.Result, error) {
	first := max(1, a.Offset)
	limit := w.opts.MaxLines
	if a.Limit > 0 {
		limit = min(limit, a.Limit)
	}
	var out strings.Builder
	line, last, counted := 0, 0, int64(0)
	full, complete := false, true
	for {
		if line%1024 == 0 && ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		text, n, err := readLine(in)
		counted += n
		if n == 0 && err != nil {
			break
		}
		line++
		if line >= first && !full {
			shown := fmt.Sprintf("%6d\t%s\n", line, clean(text, maxLine))
			if line-first >= limit || out.Len() > 0 && out.Len()+len(shown) > w.opts.MaxBytes {
				full = true
			} else {
				out.WriteString(shown)
				last = line
			}
		}
		if full && counted > maxCounted {
			complete = false
			break
		}
		if err != nil {
			break
		}
	}
	details.First, details.Last = first, last
	if complete {
		details.Lines = line
	}
	switch {
	case line == 0:
		details.First = 0
		return result("[The file is empty.]", details)
	case last == 0:
		return tool.Result{}, refuse("%s has %d lines; offset %d is behind its end.", a.Path, line, first)
	case !complete:
		fmt.Fprintf(&out, "[Lines %d to %d of a very large file. Go on with offset %d, or use grep.]", first, last, last+1)
	case last < line:
		fmt.Fprintf(&out, "[Lines %d to %d of %d. Go on with offset %d.]", first, last, line, last+1)
	}
	return result(strings.TrimSuffix(out.String(), "\n"), details)
}

// readLine gives a line without its end and how many bytes it took. Of a line
// that is longer than anyone reads, only the beginning is kept.
func readLine(in *bufio.Reader) (line []byte, n int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		n += int64(len(part))
		if keep := 4*maxLine - len(line); keep > 0 {
			line = append(line, part[:min(keep, len(part))]...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimSuffix(line, []byte{'\n'}), n, err
	}
}
