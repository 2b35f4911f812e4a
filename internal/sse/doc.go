// Package sse reads server-sent events as the HTML standard defines them
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream):
// LF, CRLF and CR line ends in any mix, a byte order mark, comments, data in
// several lines, and the event, id and retry fields.
//
// A [Reader] promises that an event is returned as soon as its blank line has
// been read, that an event cut off by the end of the stream is never returned,
// that an event larger than the limit is an error and not a memory problem, and
// that reading an event allocates nothing once the buffer has grown to its size.
package sse
