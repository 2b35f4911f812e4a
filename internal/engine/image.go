package engine

import (
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/message"
)

// checkImages refuses images that no provider takes: in a session, one of them
// makes every later request fail.
func checkImages(field string, blocks []message.Block) error {
	for i := range blocks {
		if err := blocks[i].CheckImage(); err != nil {
			at := fmt.Sprintf("%s[%d]", field, i)
			var in *message.ImageError
			if errors.As(err, &in) {
				at += "." + in.Field
			}
			return &fault.Error{Kind: fault.Invalid, Field: at, Err: err}
		}
	}
	return nil
}

// showable puts a text in the place of each image of a result that no provider
// takes. The tool's own content is left as it is.
func showable(content []message.Block) []message.Block {
	copied := false
	for i := range content {
		err := content[i].CheckImage()
		if err == nil {
			continue
		}
		if !copied {
			content, copied = append([]message.Block(nil), content...), true
		}
		content[i] = message.Text("[an image that can not be shown: " + err.Error() + "]")
	}
	return content
}
