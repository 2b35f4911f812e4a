package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/fault"
)

func (a *app) storeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Move everything that is stored", Args: exactly(0, "a command"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{Use: "copy FROM TO", Short: "Copy a whole store into an empty one",
		Long: `Copy everything that is stored, keys and usage too, from one place to another. Each is a
data folder or a PostgreSQL database (postgres://USER@HOST/DATABASE, the password in
PGPASSWORD or a passfile). The target must be empty; it gets all or nothing. Neither may be
in use: stop the servers first. The copy is checked as agentd doctor does it; the runs that
were under way go on as soon as a server is started on it. The source stays as it is: do not
start a server on both. Exit status: 0 copied and nothing is wrong with the copy, 1 otherwise.`,
		Example: `  agentd store copy /var/lib/agentd postgres://agentd@db.example.com/agentd
  agentd store copy postgres://agentd@db.example.com/agentd /var/backups/agentd`,
		Args: exactly(2, "where to copy from, and where to"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.copyStore(cmd.Context(), args[0], args[1]) }})
	return cmd
}

func (a *app) copyStore(ctx context.Context, from, to string) error {
	for _, l := range []string{from, to} {
		if agentd.HasPassword(l) {
			return checkLocation(agentd.LocationName(l), l, true)
		}
	}
	progress := func(t agentd.CopiedTable) {
		if !a.asJSON() {
			fmt.Fprintf(a.Out, "%-14s %9d rows\n", t.Table, t.Rows)
		}
	}
	r, err := agentd.CopyStore(ctx, from, to, progress)
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) && f.Kind == fault.Conflict && f.Hint == "" {
			f.Hint = "Stop the servers that use either store first."
		}
		return err
	}
	wrong := 0
	for _, f := range r.Check.Findings {
		if f.Severity != "notice" {
			wrong++
		}
	}
	if a.asJSON() {
		if r.Check.Findings == nil {
			r.Check.Findings = []agentd.Finding{}
		}
		if err := a.value(r); err != nil {
			return err
		}
	} else {
		a.describeFindings(r.Check, agentd.LocationName(to), wrong, 0)
		if r.Unfinished > 0 {
			fmt.Fprintf(a.Out, "\n%s under way: start a server on the copy, and none on %s, which still has them too\n", count(r.Unfinished, "run"), agentd.LocationName(from))
		}
	}
	if wrong > 0 {
		return &exitError{exitFailed}
	}
	return nil
}
