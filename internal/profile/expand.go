package profile

import "strings"

// expand replaces ${NAME} and ${NAME:-default} by the environment; $${ stands
// for a plain ${. It returns what is wrong as (message, hint), both without
// any value. expanded tells whether the environment went into the text.
func expand(s string, env func(string) (string, bool)) (out string, expanded bool, msg, hint string) {
	if !strings.Contains(s, "${") {
		return s, false, "", ""
	}
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), expanded, "", ""
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		s = s[i+2:]
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return "", false, "${ without its }", "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${"
		}
		name, def, hasDef := strings.Cut(s[:end], ":-")
		s = s[end+1:]
		if strings.Contains(def, "${") {
			return "", false, "a default inside ${...} holds another ${", "write a plain text behind the :-"
		}
		if !envName(name) {
			return "", false, "${...} holds no name of an environment variable", "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${"
		}
		v, ok := env(name)
		switch {
		case hasDef && v == "":
			v = def
		case !ok && !hasDef:
			return "", false, "the environment variable " + name + " is not set",
				"set it, or give a default: ${" + name + ":-default}"
		}
		b.WriteString(v)
		expanded = true
	}
}

func envName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
