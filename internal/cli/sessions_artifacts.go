package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"agentd/client"
	"agentd/fault"
)

// artifacts are results that were too large for models.
type artifacts interface {
	Artifacts(ctx context.Context, sessionID string) ([]*client.Artifact, error)
	ArtifactData(ctx context.Context, id string) (name, mimeType string, data []byte, err error)
}

// Artifacts implements artifacts.
func (l *local) Artifacts(ctx context.Context, sessionID string) ([]*client.Artifact, error) {
	rows, err := l.rt.Artifacts(ctx, sessionID)
	out := make([]*client.Artifact, len(rows))
	for i, r := range rows {
		out[i] = (*client.Artifact)(r)
	}
	return out, err
}

// ArtifactData implements artifacts.
func (l *local) ArtifactData(ctx context.Context, id string) (name, mimeType string, data []byte, err error) {
	return l.rt.ArtifactData(ctx, id)
}

func (a *app) sessionsArtifacts() *cobra.Command {
	var save, out string
	cmd := &cobra.Command{Use: "artifacts SESSION", Short: "List the results of a session that were too large for the model, or save one",
		Long: `List the results of tools that were too large for the model, oldest first. The model
got their beginning, and the whole is kept for some days (artifacts in agentd.yaml);
what is known of one stays with its session.

With --save the content of one is written to a file, or to the output with --out -.`,
		Args: exactly(1, "the id of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, look, func(p place) error {
				rows, err := p.Artifacts(ctx, args[0])
				if err != nil {
					return err
				}
				if save != "" {
					return a.saveArtifact(ctx, p, rows, save, out)
				}
				return list(a, rows, []string{"ARTIFACT", "CREATED", "BYTES", "NAME", "KEPT"}, func(r *client.Artifact) []string {
					kept := "yes"
					switch {
					case r.ExpiredAt != "":
						kept = "expired on " + second(r.ExpiredAt)
					case r.ExpiresAt != "":
						kept = "until " + second(r.ExpiresAt)
					}
					return []string{r.ID, second(r.CreatedAt), fmt.Sprint(r.Bytes), r.Name, kept}
				}, "no result of this session was too large")
			})
		}}
	cmd.Flags().StringVar(&save, "save", "", "id of the artifact to save; its beginning is enough if no other begins so")
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to save it in, which must not exist, or - for the output (default: the artifact's name)")
	return cmd
}

func (a *app) saveArtifact(ctx context.Context, p artifacts, rows []*client.Artifact, id, path string) error {
	var found []*client.Artifact
	for _, r := range rows {
		if len(r.ID) >= len(id) && r.ID[:len(id)] == id {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return &fault.Error{Kind: fault.NotFound, Field: "save", Err: fmt.Errorf("%d artifacts of the session have an id that begins with %s", len(found), id),
			Hint: "Without --save the command lists them."}
	}
	name, _, data, err := p.ArtifactData(ctx, found[0].ID)
	if err != nil {
		return err
	}
	if path == "-" {
		_, err := a.Out.Write(data)
		return err
	}
	if path == "" {
		path = fileName(name)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Field: "out", Err: err, Hint: "Name another file with --out."}
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%d bytes are saved in %s\n", len(data), path)
	return err
}

// fileName is a name without what would lead out of the folder.
func fileName(name string) string {
	out := []byte(name)
	for i, c := range out {
		if c < ' ' || c == '/' || c == '\\' || c == ':' || i == 0 && (c == '.' || c == '-') {
			out[i] = '_'
		}
	}
	if len(out) == 0 {
		return "artifact.txt"
	}
	return string(out)
}
