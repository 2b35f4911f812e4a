// Package tokens checks what agentd takes the size of texts for against a real tokenizer:
// github.com/tiktoken-go/tokenizer, which has the vocabularies o200k_base (OpenAI from
// GPT-4o on) and cl100k_base (GPT-4, and near to Llama 3). Those of Anthropic and Google
// are not published as a library for Go; docs/limits.md says how they were measured.
package tokens
