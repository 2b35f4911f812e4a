// Package redact takes secrets and personal data out of texts that people and
// machines read beside the conversation: logs, spans, findings.
//
// It promises: what it knows as a secret (fields by name, keys and tokens of the
// vendors in patterns.go, credentials in headers and addresses, private keys) is
// not in its output; JSON stays JSON; what it has redacted it leaves alone when
// it sees it again. It does not promise to know every secret. Personal data
// (email, phone, credit_card) is masked where somebody asks for it.
package redact
