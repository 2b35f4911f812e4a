// Package prompt assembles requests. A request is a function of its parts
// alone: the same parts give the same bytes, tools are sorted, and each request
// of a session extends the one before it, so that providers' prompt caches hold.
//
// What is said ahead of a conversation is made of sections ([Section]), each of a
// tier: static changes on deploy, org when an administrator edits something, turn
// with every message. A [Set] holds them in that order, or refuses them. Static and
// org sections are the system prompt, with a cache mark at the end of each tier. Turn
// sections are not: they are put beside the newest message of a person, as blocks of
// context, like everything else that changes while people talk (the open page, the
// date).
//
// A block of context ([Block]) is sent again only when it differs from what the
// conversation was told last ([Told]); what was sent once stays where it is, as it is.
// Texts of people and tools can not look like one ([Neutral]).
package prompt
