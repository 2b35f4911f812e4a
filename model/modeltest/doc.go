// Package modeltest holds every model adapter to the promises of package model.
//
// [Run] plays wire fixtures (the provider's own stream format, one file per
// scenario) through a server on loopback and checks what the adapter makes of
// them: the grammar of the events, content, usage, errors, cuts at every byte,
// cancelling, and the bytes of its requests. An adapter's test gives a [Harness]
// and its testdata folder; the scenarios mean the same for all adapters.
//
// A [Wire] says what a format is made of, and has its adapter read streams as servers,
// gateways and networks deform them ("deformed streams"): an error in the middle, unknown
// events, empty deltas, characters and escapes of arguments cut in two, no terminal marker,
// two reasons to end, usage on either side of the end, any line ends and comments, silence
// with and without keep-alives, gzip that nobody asked for, web pages, errors with status
// 200. Each ends in the whole message or in an error of the right class.
//
// [Handoffs] has every provider take conversations over from every other one.
//
// # Pi's suites
//
// [Core] has every adapter, and the script in process, pass what Pi has each of its
// providers pass, by the names that Pi gives its suites. There they run against the live
// services; here against the simulator, which refuses what the services refuse. None of
// them was ever run against a live service.
//
//	stream                    text, a call of a tool, thoughts, and the turns after them
//	tokens                    usage of a reply that was aborted: counted, or an estimate
//	                          that says so; the script counts at the end, and has none
//	abort                     ahead of a reply and in it, and the conversation after it
//	empty                     messages of nothing are left out; a request of nothing else
//	                          is invalid and is not sent. The script answers it.
//	context-overflow          class overflow, which is not tried again
//	image-limits              240 messages with 120 images: at most 100 are sent
//	unicode-surrogate         halves of characters are not sent, all others are
//	tool-call-without-result  the call gets a result that says so
//	errored-assistant-orphaned-tool-results  neither is sent
//	image-tool-result         alone and behind a text; not to models that take none
//	whitespace-tool-result    is sent as "(no tool output)"
//	total-tokens              the sum of its parts, also when a cache is read; Ollama and
//	                          the script do not say what they read from one
//	interleaved-thinking      thoughts between calls go back as they came
//	cross-provider-handoff    a conversation of a model that is none of these; all pairs
//	                          are in Handoffs
//	provider-retry            one request, class and delay; the engine asks again
//
// Other suites of Pi's are held here by [Run], for each adapter on its own wire:
// transform-messages and image-tool-result in "takeover", terminal events in "cut at every
// byte" and "broken streams", error bodies in "failures" and "not a stream".
package modeltest
