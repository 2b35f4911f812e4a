package gemini

import (
	"cmp"
	"slices"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// functionName is the name of a tool as the API takes it: elsewhere it may begin with a
// digit or a dash, here with a letter or an underscore.
func functionName(name string) string {
	name = llmwire.ToolName(name)
	if c := name[0]; c == '-' || c >= '0' && c <= '9' {
		const longest = 64
		name = ("_" + name)[:min(len(name)+1, longest)]
	}
	return name
}

// ownNames are the tools that have another name at the API, by that name; nil if none has.
func ownNames(tools []model.ToolSpec) map[string]string {
	var names map[string]string
	for i := range tools {
		if name := functionName(tools[i].Name); name != tools[i].Name {
			if names == nil {
				names = map[string]string{}
			}
			names[name] = tools[i].Name
		}
	}
	return names
}

// inOrder gives the results of a reply's calls in the order of the calls: models that
// know no ids match them by it.
func inOrder(reply *message.Message, results []message.Message) []message.Message {
	place := func(r message.Message) int {
		return slices.IndexFunc(reply.Content, func(c message.Block) bool { return c.Type == message.BlockToolCall && c.ID == r.ToolCallID })
	}
	less := func(a, b message.Message) int { return cmp.Compare(place(a), place(b)) }
	if slices.IsSortedFunc(results, less) {
		return results
	}
	results = slices.Clone(results)
	slices.SortStableFunc(results, less)
	return results
}
