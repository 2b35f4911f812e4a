package engine

import "agentd/internal/run"

// closing is what the model is told when it is asked to close its answer.
func closing(reason string) string {
	why := "The turn is about to end."
	switch reason {
	case run.StopRepeatedFailures:
		why = "The same tool call, with the same arguments, has failed several times in a row."
	case run.StopRepeatedCalls:
		why = "The same tool call, with the same arguments, has had the same result several times in a row."
	case run.StopMaxSteps:
		why = "The limit of steps for this turn is reached."
	case run.StopMaxToolCalls:
		why = "The limit of tool calls is used up."
	case run.StopMaxCost, run.StopMaxTokens:
		why = "The budget is used up: this is the last reply that it pays. Be brief."
	}
	return why + " Tools are no longer available in this turn. Answer now, in text, with what there is: say what was done, what did not work, and what is missing."
}
