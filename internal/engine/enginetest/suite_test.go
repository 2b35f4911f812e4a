package enginetest

import "testing"

func TestNodesThatTakeWhatThereIs(t *testing.T) { Run(t, Shared) }

func TestNodesThatDoAPartEach(t *testing.T) { Run(t, Pooled) }
