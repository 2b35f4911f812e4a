package model

import "strings"

// Encoding says how a model's provider makes tokens of a request, as far as that can be
// told without its tokenizer: which table counts its texts, what it adds to messages and
// tools, and what an image takes. It is right to about a twentieth for texts of some
// length; docs/limits.md has the figures. The zero value is for models that nobody knows:
// it counts texts as Llama's and GPT-4's vocabulary does.
type Encoding struct {
	text  vocabulary
	image imageRule
}

// vocabulary says which table counts texts, and which frame is put around messages.
type vocabulary uint8

const (
	vocabularyCL100K   vocabulary = iota // GPT-4, GPT-3.5; Llama 3 and what was made of it are near
	vocabularyO200K                      // OpenAI from GPT-4o on
	vocabularyClaude                     // Claude up to 4.6
	vocabularyClaude47                   // Claude from 4.7 on: words of Latin letters are in more pieces
	vocabularyGemma                      // Gemini and Gemma
)

// EncodingOf gives the encoding of a model by its id, with or without the provider's name
// ahead: "gpt-5.4", "azure/chat", "anthropic.claude-opus-4-8-v1:0". What stands behind the
// last slash is the model's own name, and says it; where that says nothing the name of a
// provider does whose models are known. Else it is the zero value: what a proxy is called
// does not say what is behind it.
func EncodingOf(id string) Encoding {
	name := id[strings.LastIndexByte(id, '/')+1:]
	has := func(s string) bool { return strings.Contains(name, s) }
	begins := func(s string) bool { return strings.HasPrefix(name, s) }
	switch {
	case has("claude"):
		if newClaude(name) {
			return Encoding{vocabularyClaude47, imageClaude47}
		}
		return Encoding{vocabularyClaude, imageClaude}
	case has("gemini-1"), has("gemini-2"):
		return Encoding{vocabularyGemma, imageGemini2}
	case has("gemini"):
		return Encoding{vocabularyGemma, imageGemini}
	case has("gemma"):
		return Encoding{vocabularyGemma, imageGemini2}
	case has("gpt-oss"):
		return Encoding{text: vocabularyO200K}
	case has("gpt-4o"), has("gpt-4.1"), has("gpt-5"), has("gpt-4.5"), has("chatgpt"), begins("o1"), begins("o3"), begins("o4-"):
		if has("mini") || has("nano") || has("gpt-5.4") || has("gpt-5.5") || has("gpt-5.6") {
			return Encoding{vocabularyO200K, imagePatches}
		}
		return Encoding{vocabularyO200K, imageTiles}
	case has("gpt-4"), has("gpt-3"):
		return Encoding{vocabularyCL100K, imageTiles}
	case has("gpt-"):
		return Encoding{vocabularyO200K, imagePatches}
	}
	switch provider, _, _ := strings.Cut(id, "/"); {
	case provider == id: // it has none
	case provider == "azure", provider == "openai":
		return Encoding{vocabularyO200K, imagePatches}
	case provider == "anthropic":
		return Encoding{vocabularyClaude47, imageClaude47}
	case provider == "gemini":
		return Encoding{vocabularyGemma, imageGemini}
	}
	return Encoding{}
}

// newClaude is whether a Claude is of 4.7 or newer, when the vocabulary changed. Sonnet
// and Haiku had no 4.7: theirs changed with 5.
func newClaude(id string) bool {
	_, v, _ := strings.Cut(id, "claude")
	major, minor, at := 0, 0, 0
	for at < len(v) && !isDigit(v[at]) {
		at++
	}
	for ; at < len(v) && isDigit(v[at]); at++ {
		major = major*10 + int(v[at]-'0')
	}
	if at < len(v) && (v[at] == '-' || v[at] == '.') {
		from := at + 1
		for at = from; at < len(v) && isDigit(v[at]) && at < from+3; at++ {
			minor = minor*10 + int(v[at]-'0')
		}
		if at > from+2 {
			minor = 0 // a date
		}
	}
	return major > 4 || major == 4 && minor >= 7
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// Text is about how many tokens a text has. It takes no memory and about as long as
// reading the text.
func (e Encoding) Text(s string) int64 { return whole(scan(e.text, s)) }

// The parts are counted in this many to a token, so that what is rounded does not add up.
const partsPerToken = pairUnit * runUnit

func whole(parts int64) int64 { return (parts + partsPerToken/2) / partsPerToken }

// How the tables are written: characters from the space on stand for 0, 1, 2 … of these
// parts.
const (
	pairUnit = 64
	runUnit  = 16
	zeroChar = ' '
)

// Kinds of characters. Those of ASCII that are no letters, digits or spaces are one each.
const (
	kindLower = iota
	kindUpper
	kindDigit
	kindSpace
	kindNewline
)

const (
	kindLatin = iota + 39
	kindLatinSign
	kindLatinFar
	kindCombining
	kindGreek
	kindCyrillic
	kindHebrew
	kindArabic
	kindDevanagari
	kindIndic
	kindThai
	kindPunctuation
	kindSymbol
	kindEmoji
	kindWide
	kindKana
	kindHan
	kindHangul
	kindOther
	kindSpaces // the second space, and all that follow it
	kinds
)

const (
	letters = 26
	// Where in a table of pairs those of letters begin.
	lowerPairs = kinds * kinds
	upperPairs = lowerPairs + letters*letters
	allPairs   = upperPairs + letters*letters
	// How far into a run the tables tell places apart, and where those of words begin:
	// after a space, after a capital, after anything else.
	places    = 16
	wordRuns  = kinds * places
	allRuns   = wordRuns + 3*places
	wordSpace = wordRuns
	wordUpper = wordRuns + places
	wordOther = wordRuns + 2*places
	// Long numbers are cut in threes (or ones): places go on in circles.
	digitCircle = 6
)

func (v vocabulary) tables() (pairs, runs string) {
	switch v {
	case vocabularyO200K:
		return o200kPairs, o200kRuns
	case vocabularyClaude:
		return claudePairs, claudeRuns
	case vocabularyClaude47:
		return claude47Pairs, claude47Runs
	case vocabularyGemma:
		return gemmaPairs, gemmaRuns
	}
	return cl100kPairs, cl100kRuns
}

// scan adds up how many tokens begin at each character, in parts: how often one begins
// between these two characters, by how far it is into its word, number or run.
func scan[T string | []byte](v vocabulary, s T) (sum int64) {
	pairs, runs := v.tables()
	if len(pairs) != allPairs || len(runs) != allRuns {
		return 0 // so that the compiler knows
	}
	prev, run, word := kindNewline, 0, wordOther
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b >= 0x80 {
			kind, n := kindBeyond(s[i:])
			i += n - 1
			if run++; kind != prev {
				run = 0
			}
			sum += int64(pairs[prev*kinds+kind]-zeroChar) * int64(runs[kind*places+min(run, places-1)]-zeroChar)
			prev = kind
			continue
		}
		kind := int(asciiKinds[b&0x7f])
		pair, place := 0, 0
		switch {
		case kind == kindLower && prev == kindLower:
			run++
			pair = lowerPairs + int(s[i-1]|0x20-'a')*letters + int(b-'a')
			place = word + min(run, places-1)
		case kind == kindLower:
			run = 0
			switch prev {
			case kindUpper:
				word = wordUpper
				pair, place = lowerPairs+int(s[i-1]|0x20-'a')*letters+int(b-'a'), word
			case kindSpace, kindSpaces:
				word = wordSpace
				pair = prev*kinds + kindLower
			default:
				word = wordOther
				pair = prev*kinds + kindLower
			}
		default:
			if kind == kindSpace && (prev == kindSpace || prev == kindSpaces) {
				kind = kindSpaces
			}
			if run++; kind != prev {
				run = 0
			}
			at := min(run, places-1)
			if kind == kindDigit && run >= places {
				at = places - digitCircle + (run-(places-digitCircle))%digitCircle
			}
			pair, place = prev*kinds+kind, kind*places+at
			if kind == kindUpper && prev == kindUpper {
				pair = upperPairs + int(s[i-1]-'A')*letters + int(b-'A')
			}
		}
		sum += int64(pairs[pair]-zeroChar) * int64(runs[place]-zeroChar)
		prev = kind
	}
	return sum
}

// kindBeyond is the kind of the first character, which is not ASCII, and how many bytes
// it has. Of what is no UTF-8 any bytes are a character.
func kindBeyond[T string | []byte](s T) (kind, n int) {
	b := s[0]
	switch {
	case b < 0xC0 || b >= 0xF8:
		return kindOther, 1
	case b < 0xE0:
		n = 2
	case b < 0xF0:
		n = 3
	default:
		n = 4
	}
	if len(s) < n {
		return kindOther, 1
	}
	switch n {
	case 2:
		return kindOfRune(rune(b&0x1F)<<6 | rune(s[1]&0x3F)), n
	case 3:
		return kindOfRune(rune(b&0x0F)<<12 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)), n
	}
	return kindOfRune(rune(b&0x07)<<18 | rune(s[1]&0x3F)<<12 | rune(s[2]&0x3F)<<6 | rune(s[3]&0x3F)), n
}

func kindOfRune(r rune) int {
	between := func(from, to rune) bool { return r >= from && r < to }
	switch {
	case r < 0xC0:
		return kindLatinSign
	case r < 0x180:
		return kindLatin
	case r < 0x250, between(0x1E00, 0x1F00):
		return kindLatinFar
	case r < 0x370:
		return kindCombining
	case r < 0x400, between(0x1F00, 0x2000):
		return kindGreek
	case r < 0x530:
		return kindCyrillic
	case between(0x590, 0x600):
		return kindHebrew
	case between(0x600, 0x780):
		return kindArabic
	case between(0x900, 0x980):
		return kindDevanagari
	case between(0x980, 0xE00):
		return kindIndic
	case between(0xE00, 0xE80):
		return kindThai
	case between(0x2000, 0x2070):
		return kindPunctuation
	case between(0x2070, 0x2600):
		return kindSymbol
	case between(0x2600, 0x2800), between(0x1F000, 0x20000):
		return kindEmoji
	case between(0x3000, 0x3040), between(0xFF00, 0xFFF0):
		return kindWide
	case between(0x3040, 0x3100):
		return kindKana
	case between(0x3400, 0xA000), r >= 0x20000:
		return kindHan
	case between(0xAC00, 0xD7B0):
		return kindHangul
	}
	return kindOther
}

// asciiKinds are the kinds of the characters of ASCII.
const asciiKinds = "" +
	"\x06\x06\x06\x06\x06\x06\x06\x06\x06\x05\x04\x06\x06\x06\x06\x06" +
	"\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06" +
	"\x03\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15" +
	"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x16\x17\x18\x19\x1a\x1b" +
	"\x1c\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01" +
	"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x1d\x1e\x1f\x20\x21" +
	"\x22\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x23\x24\x25\x26\x06"
