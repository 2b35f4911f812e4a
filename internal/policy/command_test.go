package policy

import (
	"strings"
	"testing"
)

// What only looks is allowed in plan mode; whatever is not understood is not.
func TestReadsOnly(t *testing.T) {
	allowed := []string{
		"ls", "ls -la", "ls -l --color=auto src", "cat go.mod", "cat 'a file' \"another\"", "grep -rn 'func main' .", "grep -n \"a\\\\b\" x", `grep "say \"hi\"" x`,
		"rg -n --type go TODO", "rg -A3 -g '*.go' 'a|b' .", "find . -name '*.go' -type f", "find . -mtime -7 -size -10k", "find . '(' -name a -o -name b ')'",
		"git status", "git status --short --branch", "git diff --stat HEAD~1..HEAD^", "git log --oneline -20", "git --no-pager log -p -n 3 -- main.go", "git show HEAD:go.mod",
		"cat a | grep b | wc -l", "ls; pwd", "ls && cat a || echo no", "sort -nrk2,3 a | uniq -c", "tail -n 5 x", "tail -20 x", "date +%F", "date -u", "ls src/*.go", "ls ./*.go",
		"diff -u a b", "head -c100 x", "\tls\t-a ", "echo 'a;b>c$(d)'", "wc -l a", "git blame -L1,20 main.go", "file -b x", "tree -L 2", "uniq -c in", "git log --author=me --since=2024-01-01",
	}
	for _, line := range allowed {
		if err := ReadsOnly(line); err != nil {
			t.Errorf("%q is refused: %v", line, err)
		}
	}
	refused := []string{
		"", " ", ";", "ls;", "ls ;; ls", "| ls", "ls |", "&& ls",
		// What writes: redirections, git, packages, files, builds.
		"ls > x", "ls >> x", "ls 2>/dev/null", "cat < x", "cat <<EOF", "cat <(ls)", "ls 2>&1", "ls >| x", "ls &> x",
		"git commit -m x", "git push", "git checkout .", "git reset --hard", "git branch x", "git stash", "git apply x", "git add .", "git config a b", "git clean -fd", "git",
		"npm install", "npm ls", "pip install x", "apt-get install x", "brew install x", "go get x", "cargo add x", "yarn", "rm -rf /", "mv a b", "cp a b", "mkdir x",
		"make", "go build ./...", "mvn package", "gradle build", "ninja", "touch x", "chmod +x a", "ln -s a b", "dd if=a of=b", "tee x", "truncate -s0 x", "kill 1",
		// Substitutions, variables and expansions.
		"ls $(rm x)", "ls `rm x`", "ls \"$(rm x)\"", "ls \"`rm x`\"", "cat \"\\$(rm)\"", "$X", "ls $X", "ls ${X}", "cat \"$HOME/x\"", "ls {a,b}", "ls ~", "ls !!", "ls \"!!\"", "ls #x", "a\\b", "l\\s",
		// Other commands behind it.
		"ls; rm x", "ls;rm x", "ls && rm x", "ls || rm x", "ls | sh", "cat x | bash", "cat x |sh", "ls & rm x", "ls &", "ls |& sh", "ls\nrm x", "ls\r\nrm x", "ls\x00rm", "(ls)", "{ ls; }", "! ls",
		"ls | xargs rm", "cat a | tee b", "ls | sudo cat", "echo 'rm x' | sh", "if true; then rm x; fi", "f() { rm x; }", "while ls; do rm x; done",
		// Programs that run others, or whose options do.
		"find . -exec rm {} ;", "find . -exec rm '{}' ';'", "find . -execdir sh -c x ';'", "find . -ok rm ';'", "find . -delete", "find . '-delete'", "find . \"-dele\"te", "find . -fprint x", "find . -fls x",
		"git -c core.pager=sh log", "git -C .. log", "git --git-dir=x log", "git --exec-path=x status", "git -p log", "git diff --output=x", "git diff --outp=x", "git log --output x", "git diff --ext-diff", "git show --textconv",
		"git log -c --output=x", "rg --pre sh x", "rg --pre=sh x", "rg --hostname-bin x y", "rg -z x", "rg -- --pre=sh", "grep -e -- x | rg -e -- --pre=sh x", "sort -o x y", "sort -ox y", "sort -no x y", "sort --output=x",
		"sort --compress-program=sh x", "sort -T /x y", "uniq a b", "uniq -c a b", "date 010100002030", "date -s x", "date --set=x", "tree -o x", "tree -R -L 1", "file -C -m x", "tail -f x",
		"env rm x", "env", "FOO=bar ls", "PATH=. ls", "LD_PRELOAD=x ls", "sh -c ls", "bash ls", "eval ls", "exec ls", "command ls", "builtin ls", "sudo ls", "time ls", "nohup ls", "awk '{print}' x", "sed -n p x", "sed -i s/a/b/ x",
		"python -c x", "perl -e x", "vi x", "less x", "man x", "ssh x", "curl x", "wget x", "watch ls", "timeout 1 ls", "nice ls",
		// Programs by other names and ways.
		"/bin/ls", "./ls", "../ls", "'ls -la'", "\"ls;rm\"", "LS", "ls.exe", "''", "'' ls", "l\"\"s\\",
		// Names of files that become options.
		"cat *", "ls *.go", "rg x ?", "rg x -*", "sort [a]", "rg x \"\"*", "*", "l?",
		// Quotes that do not end, and characters that nobody expects.
		"ls 'a", "ls \"a", "ls \"a\\", "ls é", "ls\u00a0-la", "ls \x01", "ls '\x01'", "ls 'a\nb'", "ls \"a\nb\"", "ls ^a", "ls a=~", "ls a:~/b", "ls ''~", "ls ~a", "cat (a)", "ls a\\ b",
		strings.Repeat("ls ", maxCommand),
	}
	for _, line := range refused {
		if err := ReadsOnly(line); err == nil {
			t.Errorf("%q is allowed", line)
		}
	}
}

// Whatever is allowed has none of what makes a shell do more, outside of quotes, and
// begins each of its commands with a known program.
func FuzzReadsOnly(f *testing.F) {
	for _, line := range []string{"ls -la | grep 'x y' && git log -5; cat \"a\"", "find . -name '*.go'", "ls $(x)", "git -c a=b log", "sort -o x", "'ls' > x", "a\\", "ls\n"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if ReadsOnly(line) != nil {
			return
		}
		var bare strings.Builder // without what is in quotes
		for i := 0; i < len(line); i++ {
			switch c := line[i]; c {
			case '\'':
				i += 1 + strings.IndexByte(line[i+1:], '\'')
				bare.WriteByte('q')
			case '"':
				for i++; line[i] != '"'; i++ {
					if line[i] == '$' || line[i] == '`' {
						t.Fatalf("%q: a substitution in quotes", line)
					}
					if line[i] == '\\' {
						i++
					}
				}
				bare.WriteByte('q')
			default:
				bare.WriteByte(c)
			}
		}
		if i := strings.IndexAny(bare.String(), "$`\\<>(){}!#\n\r\x00"); i >= 0 {
			t.Fatalf("%q: %q outside of quotes", line, bare.String()[i])
		}
		for i, c := range bare.String() {
			if (c == '~' || c == '^') && (i == 0 || !alphanumeric(bare.String()[i-1])) {
				t.Fatalf("%q: %q where a shell expands it", line, c)
			}
		}
		rest := strings.NewReplacer("&&", ";", "||", ";", "|", ";").Replace(bare.String())
		if strings.Contains(rest, "&") {
			t.Fatalf("%q: a job in the background", line)
		}
		for _, part := range strings.Split(rest, ";") {
			words := strings.Fields(part)
			if len(words) == 0 {
				t.Fatalf("%q: an empty command", line)
			}
			if _, ok := programs(words[0]); !ok && words[0] != "git" && !strings.Contains(words[0], "q") {
				t.Fatalf("%q: runs %q", line, words[0])
			}
		}
	})
}
