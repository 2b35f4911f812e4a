package llmwire

import "slices"

// Finished is why a reply ended, where a stream says so more than once: the last word
// counts, but that a reply is whole does not take back that it is cut or stopped. was is
// what was said so far, usual are the words for whole replies.
func Finished(was, now string, usual ...string) string {
	if now == "" || was != "" && slices.Contains(usual, now) && !slices.Contains(usual, was) {
		return was
	}
	return now
}
