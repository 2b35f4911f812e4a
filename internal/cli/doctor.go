package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/fault"
)

func (a *app) doctorCommand() *cobra.Command {
	var repair bool
	cmd := &cobra.Command{Use: "doctor", Short: "Check a data folder, explain what is wrong, and repair what is safe",
		Long: `Check the store of a data folder: the file itself, that every conversation can be
read from its leaf to its root, that runs, their states, events and interrupts agree,
that nothing is left without its owner, that what is packed can be unpacked, and that
the sums of usage hold what the steps used.

It can be used beside a server. With --repair the store must not be in use; what is
safe is repaired, and nothing that holds what somebody said is deleted. Make a copy
of the data folder first all the same. Exit status: 0 nothing is wrong or all of it
was repaired, 1 something is wrong.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), repair) }}
	cmd.Flags().BoolVar(&repair, "repair", false, "repair what is safe")
	a.dataFlag(cmd)
	a.configsFlag(cmd)
	return cmd
}

func (a *app) doctor(ctx context.Context, repair bool) error {
	data, err := a.dataFolder()
	if err != nil {
		return err
	}
	r, err := agentd.CheckStore(ctx, data, repair)
	if err != nil {
		var f *fault.Error
		if repair && errors.As(err, &f) && f.Kind == fault.Conflict {
			f.Hint = "Stop the server first, or check without --repair."
		}
		return err
	}
	wrong, repairable := 0, 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity != "notice" && !f.Repaired {
			wrong++
		}
		if f.Repair != "" && !f.Repaired {
			repairable++
		}
	}
	if a.asJSON() {
		if r.Findings == nil {
			r.Findings = []agentd.Finding{}
		}
		if err := a.value(r); err != nil {
			return err
		}
	} else {
		a.describeFindings(r, agentd.LocationName(data), wrong, repairable)
	}
	if wrong > 0 {
		return &exitError{exitFailed}
	}
	return nil
}

func (a *app) describeFindings(r *agentd.CheckReport, data string, wrong, repairable int) {
	fmt.Fprintf(a.Out, "%s: %s, %s, %d entries, %s, %s, %s\n", data, count(int(r.Sessions), "session"), count(int(r.Runs), "run"), r.Entries,
		count(int(r.Events), "event"), count(int(r.Interrupts), "interrupt"), count(int(r.Blobs), "artifact"))
	for _, f := range r.Findings {
		head := f.Severity + " (" + f.Check + ")"
		if f.Where != "" {
			head += " " + f.Where
		}
		fmt.Fprintf(a.Out, "\n%s\n  %s\n", printable(head), printable(f.What))
		switch {
		case f.Repaired:
			fmt.Fprintln(a.Out, "  repaired: "+printable(f.Repair))
		case f.Repair != "":
			fmt.Fprintln(a.Out, "  --repair would "+printable(f.Repair))
		}
		if f.Advice != "" {
			fmt.Fprintln(a.Out, "  "+printable(f.Advice))
		}
	}
	switch {
	case len(r.Findings) == 0:
		fmt.Fprintln(a.Out, "nothing is wrong")
	case wrong == 0:
		fmt.Fprintln(a.Out, "\nnothing is left to do")
	case repairable > 0:
		fmt.Fprintf(a.Out, "\n%s; %d can be repaired: agentd doctor --repair\n", count(wrong, "problem"), repairable)
	default:
		fmt.Fprintf(a.Out, "\n%s\n", count(wrong, "problem"))
	}
}
