package mcp

import (
	"encoding/base64"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentd/message"
	"agentd/tool"
)

// convert turns a server's result into agentd's: texts and images for the model,
// structured content as details. What a model can not take is named in a text.
func convert(r *sdk.CallToolResult) (tool.Result, error) {
	out := tool.Result{IsError: r.IsError}
	if r.StructuredContent != nil {
		raw, err := tool.EncodeJSON(r.StructuredContent)
		if err != nil {
			return out, fmt.Errorf("the structured content can not be read: %w", err)
		}
		out.Details = raw
	}
	for _, c := range r.Content {
		out.Content = append(out.Content, block(c))
	}
	if len(out.Content) == 0 {
		switch {
		case out.Details != nil:
			out.Content = []message.Block{message.Text(string(out.Details))}
		case r.IsError:
			out.Content = []message.Block{message.Text("The tool failed and said nothing about it.")}
		default:
			out.Content = []message.Block{message.Text("(no output)")}
		}
	}
	return out, nil
}

func block(c sdk.Content) message.Block {
	switch c := c.(type) {
	case *sdk.TextContent:
		return message.Text(strings.ToValidUTF8(c.Text, "\uFFFD"))
	case *sdk.ImageContent:
		return image(c.Data, c.MIMEType, "image")
	case *sdk.AudioContent:
		return message.Text(fmt.Sprintf("[audio, %s, %d bytes: it can not be shown here]", c.MIMEType, len(c.Data)))
	case *sdk.ResourceLink:
		var b strings.Builder
		fmt.Fprintf(&b, "[resource %s]", c.URI)
		for _, s := range []string{c.Title, c.Name, c.MIMEType, c.Description} {
			if s != "" {
				b.WriteString(" " + s)
			}
		}
		return message.Text(b.String())
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return message.Text("[empty resource]")
		}
		if c.Resource.Blob != nil {
			return image(c.Resource.Blob, c.Resource.MIMEType, "resource "+c.Resource.URI)
		}
		return message.Text(fmt.Sprintf("[resource %s]\n%s", c.Resource.URI, strings.ToValidUTF8(c.Resource.Text, "\uFFFD")))
	}
	return message.Text(fmt.Sprintf("[content of type %T: it can not be shown here]", c))
}

// image shows an image of a kind that models take, and names anything else.
func image(data []byte, mimeType, what string) message.Block {
	switch mimeType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if len(data) > 0 {
			return message.Image(base64.StdEncoding.EncodeToString(data), mimeType)
		}
	}
	return message.Text(fmt.Sprintf("[%s, %s, %d bytes: it can not be shown here]", what, mimeType, len(data)))
}
