package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxCommand bounds, in bytes, the command lines that are looked at.
const maxCommand = 16 << 10

// ReadsOnly says what keeps a command line for a POSIX shell from being known to do
// nothing but look; nil: it only looks. It knows few programs and of each the options
// that only look, in words that are written out or quoted, joined by |, ;, && and ||.
// Everything else is refused, whatever it would do: variables, substitutions, redirections,
// here documents, subshells, line breaks, jobs in the background, assignments, programs by
// their path. What a program's own configuration has it do, and what a name of the list is
// on the machine, is not looked at.
func ReadsOnly(line string) error {
	if len(line) > maxCommand {
		return fmt.Errorf("it has %d bytes, and %d are the most that are looked at", len(line), maxCommand)
	}
	segments, err := shellWords(line)
	if err != nil {
		return err
	}
	for _, words := range segments {
		if err := looks(words); err != nil {
			return err
		}
	}
	return nil
}

// shellWords splits a command line into its commands and those into words, with quotes
// taken off.
func shellWords(line string) (segments [][]string, err error) {
	var words []string
	var word strings.Builder
	open, glob := false, false
	endWord := func() error {
		if !open {
			return nil
		}
		s := word.String()
		if glob && (len(words) == 0 || s[0] == '-' || strings.IndexByte("*?[", s[0]) >= 0) {
			// It could become an option by the name of a file.
			return fmt.Errorf("the pattern %q may become an option: begin it with ./", s)
		}
		words = append(words, s)
		word.Reset()
		open, glob = false, false
		return nil
	}
	endSegment := func() error {
		if err := endWord(); err != nil {
			return err
		}
		if len(words) == 0 {
			return errors.New("a command is missing")
		}
		segments, words = append(segments, words), nil
		return nil
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			err = endWord()
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("a quote is not closed")
			}
			s := line[i+1 : i+1+end]
			if err = quotable(s); err == nil {
				word.WriteString(s)
				open, i = true, i+1+end
			}
		case c == '"':
			var s string
			if s, i, err = doubleQuoted(line, i+1); err == nil {
				word.WriteString(s)
				open = true
			}
		case c == '|' || c == ';' || c == '&':
			if c != ';' && i+1 < len(line) && line[i+1] == c {
				i++
			} else if c == '&' {
				return nil, errors.New("& runs something in the background")
			}
			err = endSegment()
		case c == '*' || c == '?' || c == '[' || c == ']':
			// Quoted parts ahead of it do not count: what the word begins with does.
			glob, open = true, true
			word.WriteByte(c)
		case alphanumeric(c), strings.IndexByte("_-./,:=@%+", c) >= 0:
			open = true
			word.WriteByte(c)
		case (c == '~' || c == '^') && i > 0 && alphanumeric(line[i-1]): // HEAD~1, HEAD^
			word.WriteByte(c)
		case c == '>' || c == '<':
			return nil, errors.New("redirections are not allowed")
		case c == '\n' || c == '\r':
			return nil, errors.New("it has more than one line")
		default:
			return nil, fmt.Errorf("%q outside of quotes is not understood", rune(c))
		}
		if err != nil {
			return nil, err
		}
	}
	return segments, endSegment()
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// quotable is what may stand in quotes: anything on one line.
func quotable(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("it has control characters or more than one line")
	}
	return nil
}

// doubleQuoted gives the text of a double quote that begins at from, and where it ends.
func doubleQuoted(line string, from int) (text string, end int, err error) {
	var b strings.Builder
	for i := from; i < len(line); i++ {
		switch c := line[i]; c {
		case '"':
			return b.String(), i, quotable(b.String())
		case '$', '`', '!':
			return "", i, fmt.Errorf("%q in double quotes is not understood: use single quotes", rune(c))
		case '\\':
			if i+1 == len(line) {
				return "", i, errors.New("a quote is not closed")
			}
			switch next := line[i+1]; next {
			case '$', '`', '!':
				return "", i, fmt.Errorf("%q in double quotes is not understood: use single quotes", rune(next))
			case '"', '\\':
				b.WriteByte(next)
				i++
			default:
				b.WriteByte(c)
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", len(line), errors.New("a quote is not closed")
}

// program is what is known of a program that can be asked to look and do nothing else.
type program struct {
	// any: it has no option that does more than look.
	any bool
	// short are options of one letter, which may be joined and be followed by a value;
	// long those of more letters, or whole ones where exact is set.
	short string
	long  string
	exact bool
	// operands bounds the words that are no options, from 0 on; -1: any number.
	operands int
	// begins is what every one of them has to begin with.
	begins string
}

// programs are those that ReadsOnly knows. Options that write a file or run something are
// not among theirs: find -exec and -delete, sort -o and --compress-program, rg --pre, git
// --output, date's setting of the clock, the second operand of uniq, and so on.
func programs(name string) (p program, ok bool) {
	switch name {
	case "ls", "cat", "head", "wc", "grep", "pwd", "basename", "dirname", "echo", "realpath", "readlink", "stat", "which", "whoami", "id", "cut":
		return program{any: true, operands: -1}, true
	case "tail":
		return program{short: "ncqv0123456789", long: "lines bytes quiet verbose", operands: -1}, true
	case "sort":
		return program{short: "nrukthVbdgMscfiz", long: "numeric-sort reverse unique key field-separator human-numeric-sort version-sort ignore-case", operands: -1}, true
	case "uniq":
		return program{short: "cdui", long: "count repeated unique ignore-case", operands: 1}, true
	case "diff":
		return program{short: "uUrqwbiNayB", long: "unified recursive brief ignore-all-space ignore-case new-file text side-by-side", operands: -1}, true
	case "file":
		return program{short: "biLk", long: "brief mime mime-type dereference", operands: -1}, true
	case "tree":
		return program{short: "adLfshIPipugDFCn", long: "dirsfirst noreport prune", operands: -1}, true
	case "date":
		return program{short: "uIR", long: "utc iso-8601 rfc-3339", operands: 1, begins: "+"}, true
	case "rg":
		return program{short: "iSswxvclnNHhoABCegtTFUPuLmMqrpa0.", long: "ignore-case smart-case case-sensitive fixed-strings word-regexp line-regexp invert-match count count-matches files " +
			"files-with-matches files-without-match line-number no-line-number with-filename no-filename only-matching after-context before-context context regexp glob iglob " +
			"type type-not type-list hidden no-ignore max-count max-depth max-columns sort sortr stats json multiline multiline-dotall pcre2 color heading no-heading column " +
			"follow null quiet replace trim vimgrep no-messages unrestricted max-filesize", operands: -1}, true
	case "find":
		return program{exact: true, long: "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -depth -size -empty -newer " +
			"-mtime -mmin -atime -amin -ctime -cmin -perm -user -group -not -and -or -a -o -print -print0 -ls -prune -follow -mount -xdev -readable -writable -executable " +
			"-daystart -links -inum -samefile -true -false -quit -printf -H -L -P", operands: -1}, true
	}
	return p, false
}

// git is what its looking commands may be asked.
func git() program {
	return program{short: "puswbnUMCSGLziEFPvqartmh0123456789", long: "stat numstat shortstat name-only name-status oneline graph all decorate cached staged patch no-patch pretty format " +
		"since until after before author committer grep max-count skip reverse follow merges no-merges first-parent word-diff color no-color unified summary porcelain short branch " +
		"branches tags remotes ignored untracked-files diff-filter find-renames ignore-all-space ignore-space-change abbrev-commit abbrev date topo-order date-order left-right " +
		"cherry-pick no-ext-diff no-textconv raw minimal patience histogram function-context check relative merge-base line-porcelain others modified deleted stage exclude-standard", operands: -1}
}

// looks says why a command is not one that only looks.
func looks(words []string) error {
	name, rest := words[0], words[1:]
	p, ok := programs(name)
	if name == "git" {
		if len(rest) > 0 && rest[0] == "--no-pager" {
			rest = rest[1:]
		}
		if len(rest) == 0 || !slices.Contains([]string{"status", "diff", "log", "show", "blame", "ls-files"}, rest[0]) {
			return errors.New("of git only status, diff, log, show, blame and ls-files are allowed, without options ahead of them")
		}
		name, p, ok, rest = "git "+rest[0], git(), true, rest[1:]
	}
	if !ok {
		return fmt.Errorf("%q is not one of the programs that are known to do nothing but look", clip(name))
	}
	operands := 0
	for _, w := range rest {
		if len(w) > 1 && w[0] == '-' {
			// Also what follows --, because that may be the value of an option.
			if !p.option(w) {
				return fmt.Errorf("%s %s is not known to do nothing but look", name, clip(w))
			}
			continue
		}
		if operands++; p.operands >= 0 && operands > p.operands || !strings.HasPrefix(w, p.begins) {
			return fmt.Errorf("%s %s is not known to do nothing but look", name, clip(w))
		}
	}
	return nil
}

// option is whether a word that begins with - is an option of the program that only
// looks. Abbreviations of long ones are not known.
func (p *program) option(w string) bool {
	known := strings.Fields(p.long)
	long, isLong := strings.CutPrefix(w, "--")
	number := strings.Trim(w[1:], "0123456789") // as in -mtime -7
	switch {
	case p.any, w == "--":
		return true
	case p.exact:
		return slices.Contains(known, w) || len(number) < len(w)-1 && (number == "" || len(number) == 1 && strings.HasSuffix(w, number))
	case isLong:
		name, _, _ := strings.Cut(long, "=")
		return slices.Contains(known, name)
	}
	return strings.IndexByte(p.short, w[1]) >= 0 && p.joined(w[2:])
}

// joined is whether what follows the first letter of an option is known, too: more
// letters, and values that are numbers or lists of them.
func (p *program) joined(rest string) bool {
	for i := 0; i < len(rest); i++ {
		if strings.IndexByte(p.short, rest[i]) < 0 && strings.IndexByte("0123456789,.", rest[i]) < 0 {
			return false
		}
	}
	return true
}

func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}
