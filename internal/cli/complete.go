package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
)

// What shells complete is a help, never an obstacle: errors give no suggestions,
// and a server that does not answer soon gives none either.
const (
	completions    = 50
	completeWithin = 2 * time.Second
)

// completeProfiles suggests the profiles of the configuration.
func (a *app) completeProfiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return agentd.ProfileNames(a.configsFolder()), cobra.ShellCompDirectiveNoFileComp
}

// completeRuns suggests the newest runs, with what they are.
func (a *app) completeRuns(cmd *cobra.Command, args []string, _ string) (ids []string, d cobra.ShellCompDirective) {
	d = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, d
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	_ = a.at(ctx, look, func(p place) error {
		runs, _, err := p.Runs(ctx, client.RunFilter{Limit: completions})
		for _, r := range runs {
			ids = append(ids, r.ID+"\t"+r.Profile+", "+r.Status)
		}
		return err
	})
	return ids, d
}
