package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// notResult is how an answer is called that is none.
const notResult = "the server's answer is not the result of a tool"

// unreadable is an answer that the SDK could not make sense of. What the SDK has
// to say about it names its own types: it is for the log.
type unreadable struct {
	text string // for people
	err  error
}

func (u *unreadable) Error() string { return u.text }

// decoding are the words of the SDK's errors about what an answer holds. It has no
// type for them.
var decoding = regexp.MustCompile(`\bjson: |\bunmarshal|\bnil content|(unrecognized|invalid) content type`)

// unknownContent is the one error of the SDK's decoding that is written for people.
var unknownContent = regexp.MustCompile(`unrecognized content type "[^"\\]{0,60}"`)

// garbled gives err as an *unreadable if it is about what an answer holds, and not
// about the connection, the server's own error, or the end of ctx; else nil.
func garbled(ctx context.Context, err error) *unreadable {
	var wire *jsonrpc.Error
	var herr *httpError
	if err == nil || ctx.Err() != nil || errors.As(err, &wire) || errors.As(err, &herr) {
		return nil
	}
	if failed, _ := lost(err); failed || !decoding.MatchString(err.Error()) {
		return nil
	}
	text := notResult
	if detail := unknownContent.FindString(err.Error()); detail != "" {
		text += ": " + detail
	}
	return &unreadable{text, err}
}

// garbledList is err in words for people where it is about what a list of tools
// holds; any other error is left as it is.
func garbledList(ctx context.Context, err error) error {
	var wire *jsonrpc.Error
	if garbled(ctx, err) == nil && !(errors.As(err, &wire) && wire.Code == codeGarbage) {
		return err
	}
	return &unreadable{"the server's list of tools can not be read: it is not what the protocol says", err}
}

// stand is what is handed on in the place of a response whose result is no object,
// as all results of the protocol are; nil if there is nothing wrong. The SDK takes
// null for an empty result.
func (e *envelope) stand() []byte {
	result := bytes.TrimSpace(e.Result)
	if e.Method != "" || len(result) == 0 || e.Error != nil || result[0] == '{' {
		return nil
	}
	return refuse(e.ID, codeGarbage, notResult+": it is %s, not an object", kindOf(result))
}

// kindOf names a JSON value that is no object.
func kindOf(value json.RawMessage) string {
	switch value[0] {
	case 'n':
		return "null"
	case '"':
		return "a text"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}
