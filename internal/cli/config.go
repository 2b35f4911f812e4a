package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"agentd"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check and write configuration",
		Args: exactly(0, "a command: check or init"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var strict bool
	check := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check a configuration folder: every problem with file, line, key and what to do",
		Args:  atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			dir := a.configsFolder()
			if len(args) == 1 {
				dir = args[0]
			}
			return a.checkConfig(dir, strict)
		},
	}
	check.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	initCmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write the built-in configuration to a folder, to be changed (default: configs)",
		Args:  atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "configs"
			if len(args) == 1 {
				dir = args[0]
			}
			files, err := agentd.InitConfig(dir)
			if err != nil {
				return err
			}
			for _, f := range files {
				fmt.Fprintln(a.Out, f)
			}
			return nil
		},
	}
	cmd.AddCommand(check, initCmd)
	return cmd
}

// atMostOne takes a folder or nothing.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exactly(1, "one folder")(cmd, args)
	}
	return nil
}

func (a *app) checkConfig(dir string, strict bool) error {
	problems, summary := agentd.CheckConfig(dir)
	bad := 0
	for _, p := range problems {
		if p.Severity == "error" || strict && p.Severity == "warning" {
			bad++
		}
		if a.asJSON() {
			b, err := json.Marshal(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s\n", b)
			continue
		}
		fmt.Fprintln(a.Out, p.String())
	}
	if bad > 0 {
		fmt.Fprintf(a.Err, "agentd: %d of %s must be fixed\n", bad, count(len(problems), "problem"))
		return &exitError{exitUsage}
	}
	if !a.asJSON() {
		fmt.Fprintln(a.Out, "ok: "+summary)
	}
	return nil
}
