package openai

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"agentd/event"
	"agentd/internal/engine"
	"agentd/internal/server/wire"
)

// TaskModel is the model that answers the one-shot tasks of chat frontends.
const TaskModel = "agentd-task"

// Engine is what the face needs of the engine.
type Engine interface {
	Start(ctx context.Context, req engine.StartRequest) (*engine.Run, error)
	Get(ctx context.Context, ref engine.Ref) (*engine.Run, error)
	Cancel(ctx context.Context, ref engine.Ref, reason string) (*engine.Run, error)
	Watch(ctx context.Context, ref engine.Ref, after int64) iter.Seq2[event.Event, error]
	Profiles(ctx context.Context, tenant string) ([]engine.ProfileView, error)
	Converse(ctx context.Context, c *engine.Conversation) (engine.Place, error)
}

// Config configures the face. Log and Now are required.
type Config struct {
	// DefaultProfile answers for models that are not profiles; empty: they
	// are an error.
	DefaultProfile string
	// TaskProfile answers one-shot tasks; empty: the profile that was asked for.
	TaskProfile string
	// UserHeader is the header in which a trusted client names its user; empty: none.
	UserHeader string
	// ConversationHeader is the header in which a client names its conversation;
	// empty: none.
	ConversationHeader string
	// RejoinWindow is how long a run with an Idempotency-Key outlives its client.
	RejoinWindow time.Duration
	Limits       wire.Limits
	// Stream configures streams; its Closing also ends answers that are not streamed.
	Stream wire.StreamConfig
	Log    *slog.Logger
	Now    func() time.Time
}

// Face serves the protocol. It is safe for concurrent use.
type Face struct {
	engine  Engine
	cfg     Config
	clients *clients
	told    answers
	// started is the creation time of models, which have none of their own.
	started int64
}

// New returns a face.
func New(e Engine, cfg Config) *Face {
	return &Face{engine: e, cfg: cfg, clients: newClients(e, cfg.RejoinWindow, cfg.Log), started: cfg.Now().Unix()}
}

// Close cancels the runs whose clients are gone and will not be waited for.
func (f *Face) Close() { f.clients.close() }

// modelBody is a model as the protocol has it.
type modelBody struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

func (f *Face) model(id, description string) modelBody {
	return modelBody{ID: id, Object: "model", Created: f.started, OwnedBy: "agentd", Name: id, Description: description}
}

// Models lists the profiles.
func (f *Face) Models(w http.ResponseWriter, r *http.Request) error {
	profiles, err := f.engine.Profiles(r.Context(), wire.RequestOf(r.Context()).Tenant)
	if err != nil {
		return err
	}
	data := make([]modelBody, 0, len(profiles)+1)
	for _, p := range profiles {
		data = append(data, f.model(p.Name, p.Description))
	}
	data = append(data, f.model(TaskModel, "One-shot answers without tools: titles, tags, follow-up questions."))
	wire.WriteJSON(w, http.StatusOK, struct {
		Object string      `json:"object"`
		Data   []modelBody `json:"data"`
	}{"list", data})
	return nil
}

// Model shows one profile.
func (f *Face) Model(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if id == TaskModel {
		wire.WriteJSON(w, http.StatusOK, f.model(id, "One-shot answers without tools: titles, tags, follow-up questions."))
		return nil
	}
	profiles, err := f.engine.Profiles(r.Context(), wire.RequestOf(r.Context()).Tenant)
	if err != nil {
		return err
	}
	name, version, _ := strings.Cut(id, "@")
	for _, p := range profiles {
		if p.Name == name && (version == "" || version == p.Version) {
			wire.WriteJSON(w, http.StatusOK, f.model(id, p.Description))
			return nil
		}
	}
	return unknownModel(id)
}
