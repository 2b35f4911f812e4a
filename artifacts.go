package agentd

import (
	"context"
	"time"

	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/model"
)

// Artifact is a result that was too large for the model, as it is known to its
// session.
type Artifact = engine.ArtifactView

// Artifacts gives those of a session, oldest first, with those whose content is not
// kept any more.
func (rt *Runtime) Artifacts(ctx context.Context, sessionID string) ([]*Artifact, error) {
	return rt.engine.Artifacts(ctx, rt.ref(sessionID))
}

// ArtifactData gives the content of an artifact. The error of one that is not kept
// any more, of kind NotFound, says since when and why.
func (rt *Runtime) ArtifactData(ctx context.Context, id string) (name, mimeType string, data []byte, err error) {
	return rt.engine.Artifact(ctx, rt.ref(id))
}

func artifactLimits(a *profile.Artifacts) engine.ArtifactLimits {
	return engine.ArtifactLimits{Keep: time.Duration(a.KeepDays) * 24 * time.Hour, Files: a.MaxFiles, Bytes: a.MaxBytes}
}

// window is a model's context window, 0 if the catalogue does not know the model.
func window(info *model.Info) int {
	if !info.Priced() {
		return 0
	}
	return info.ContextWindow
}
