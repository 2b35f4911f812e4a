package redact

import (
	"regexp"
	"strings"
)

// Mask stands in the place of what was taken out.
const Mask = "[redacted]"

// pattern is one kind of secret. Texts without any of the hints can not hold it,
// which is found out a hundred times faster than by the expression.
type pattern struct {
	name  string
	hints []string
	// needs is a text without which it is not possible either; "" needs none.
	needs string
	// fold: the hints are lower case and looked for in any case.
	fold bool
	re   *regexp.Regexp
	// with replaces the match; "" is Mask. It may keep what names the secret.
	with string
	// check decides about a match, where an expression can not; or nil.
	check func(string) bool
}

// secrets are what no log may hold, whoever asks. Expressions are RE2: they take
// linear time, whatever the text.
func secrets() []pattern {
	p := func(name, re string, hints ...string) pattern {
		return pattern{name: name, hints: hints, re: regexp.MustCompile(re)}
	}
	ps := []pattern{
		{name: "private key", hints: []string{"PRIVATE KEY"}, re: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`)},
		{name: "authorization", hints: []string{"authorization"}, fold: true, with: "${1}" + Mask,
			re: regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest|token|apikey|negotiate)\s+)?[^\s"',;\[\]]+`)},
		{name: "bearer", hints: []string{"bearer"}, fold: true, with: "${1}" + Mask, re: regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/-]{8,}=*`)},
		{name: "address with a password", hints: []string{"://"}, with: "${1}" + Mask + "@", re: regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"'<>]*:)[^\s/?#"'<>\[\]]+@`)},
		{name: "parameter of an address", hints: []string{"?", "&"}, with: "${1}" + Mask,
			re: regexp.MustCompile(`(?i)([?&](?:token|key|auth|signature|x-amz-signature|x-amz-security-token|x-goog-signature)=)[^\s&"'#<>\[\]]{4,}`)},
		{name: "cookie", hints: []string{"cookie"}, fold: true, with: "${1}" + Mask, re: regexp.MustCompile(`(?i)(cookie["']?\s*:\s*["']?)[^\s"'\[\]][^\r\n"'\[\]]{3,}`)},
		p("OpenAI, Anthropic, OpenRouter, DeepSeek", `\bsk-[A-Za-z0-9_-]{16,}`, "sk-"),
		p("Google", `\bAIza[0-9A-Za-z_-]{30,}|\bya29\.[0-9A-Za-z._-]{16,}|\bGOCSPX-[0-9A-Za-z_-]{16,}`, "AIza", "ya29.", "GOCSPX-"),
		p("AWS", `\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b|\bABSK[A-Za-z0-9+/]{32,}=*`, "AKIA", "ASIA", "ABIA", "ACCA", "ABSK"),
		p("Azure", `\b[A-Za-z0-9]{32,}AzSe[A-Za-z0-9+/=]*|AccountKey=[A-Za-z0-9+/]{32,}=*|SharedAccessKey=[A-Za-z0-9+/]{32,}=*|[?&]sig=[A-Za-z0-9%+/]{24,}=*`, "AzSe", "AccountKey=", "SharedAccessKey=", "sig="),
		p("GitHub", `\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
		p("GitLab", `\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas)-[A-Za-z0-9_-]{16,}`, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-"),
		p("Slack", `\bx(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{16,}`, "xox", "xapp-", "hooks.slack.com"),
		p("Stripe", `\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{16,}`, "_live_", "_test_", "whsec_"),
		p("SendGrid", `\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, "SG."),
		p("Twilio", `\bSK[0-9a-f]{32}\b`, "SK"),
		p("npm, PyPI", `\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{32,}`, "npm_", "pypi-"),
		p("model hosts", `\b(?:hf_|gsk_|xai-|pplx-|r8_|fw_|nvapi-|tvly-|csk-|jina_|voyage-)[A-Za-z0-9_-]{20,}|\bpa-[A-Za-z0-9_-]{32,}`,
			"hf_", "gsk_", "xai-", "pplx-", "r8_", "fw_", "nvapi-", "tvly-", "csk-", "jina_", "voyage-", "pa-"),
		p("clouds", `\bdo[opr]_v1_[0-9a-f]{32,}|\bdapi[0-9a-f]{32}\b|\bhv[sbr]\.[A-Za-z0-9_-]{20,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\bshp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}\b|\blin_api_[A-Za-z0-9]{20,}|\bntn_[A-Za-z0-9]{30,}|\bsntry[su]_[A-Za-z0-9_=+/-]{20,}|\bfo1_[A-Za-z0-9_-]{20,}`,
			"_v1_", "dapi", "hvs.", "hvb.", "hvr.", "dckr_pat_", "shpat_", "shpss_", "shpca_", "shppa_", "lin_api_", "ntn_", "sntry", "fo1_"),
		p("Telegram", `\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}`, ":AA"),
		p("agentd", `\bagentd_[A-Za-z0-9_]{16,}`, "agentd_"),
		p("JSON web token", `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, "eyJ"),
	}
	// Assignments in texts: password=…, "api_key": "…", --token …; quotes may be escaped.
	const name = `((?i:password|passwd|passphrase|secret|api[_-]?key|(?:access|auth|refresh|bearer|session|id|api|bot)[_-]?token|(?:secret|access|private)[_-]?(?:access[_-]?)?key|client[_-]?secret|credentials?)\\*["']?\s*[:=]\s*\\*`
	hints := []string{"password", "passwd", "passphrase", "secret", "api_key", "apikey", "api-key", "token", "access_key", "access-key", "private_key", "credential"}
	for _, p := range []struct{ needs, re string }{
		{`"`, name + `")[^"\n\[\]]{4,}?(\\*")`},
		{"'", name + `')[^'\n\[\]]{4,}?(\\*')`},
		{"", name + `["']?)[^\s"',;&\[\]{}()<>\\]{4,}()`},
		{"--", `(?i)(--(?:password|passwd|token|secret|api-?key|(?:auth|access)-?token|client-?secret|credentials?)\s+["']?)[^\s"'\[\]-][^\s"'\[\]]{3,}()`},
	} {
		ps = append(ps, pattern{name: "assignment", fold: true, needs: p.needs, with: "${1}" + Mask + "${2}", hints: hints, re: regexp.MustCompile(p.re)})
	}
	return ps
}

// personal are the kinds of personal data.
func personal(kind string) (pattern, bool) {
	switch kind {
	case "email":
		return pattern{name: kind, hints: []string{"@"}, re: regexp.MustCompile(`[\pL\pN._%+'-]+@[\pL\pN-]+(?:\.[\pL\pN-]+)+`)}, true
	case "phone":
		return pattern{name: kind, re: regexp.MustCompile(`(?:\+|\b00)[0-9](?:[ ./()-]{0,2}[0-9]){6,13}\b|\(?\b[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}\b|\b0[0-9]{2,4}[ /-][0-9](?:[ -]?[0-9]){4,8}\b`)}, true
	case "credit_card":
		return pattern{name: kind, re: regexp.MustCompile(`\b[0-9](?:[ -]?[0-9]){12,18}\b`), check: luhn}, true
	}
	return pattern{}, false
}

// Kinds are the kinds of personal data that New knows.
func Kinds() []string { return []string{"email", "phone", "credit_card"} }

// luhn is the check sum that every card number has.
func luhn(s string) bool {
	sum, n := 0, 0
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < '0' || s[i] > '9' {
			continue
		}
		d := int(s[i] - '0')
		if n%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
		n++
	}
	return sum%10 == 0
}

// names of fields that hold secrets, in lower case without "-" and "_". They
// count as whole names and as endings: db_password, X-Api-Key.
func secretFields() []string {
	return []string{"password", "passwd", "passphrase", "secret", "apikey", "authorization", "accesskey", "secretkey", "privatekey",
		"secretaccesskey", "accesstoken", "authtoken", "refreshtoken", "bearertoken", "sessiontoken", "idtoken", "apitoken", "bottoken",
		"clientsecret", "credential", "credentials", "cookie", "setcookie", "proxyauthorization"}
}

// fieldName brings the ways to write a name together.
func fieldName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == '_' || r == '.' || r == ' ':
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
