package cli

import (
	"os"

	"golang.org/x/term"
)

// terminalWidth is how many characters fit a line of the terminal; 0 if nobody knows.
func terminalWidth(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}
