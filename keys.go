package agentd

import (
	"context"

	"agentd/internal/keys"
	"agentd/internal/server"
)

// Names from the keys that callers need.
type (
	// Key is an API key as people see it: without its secret.
	Key = keys.Key
	// KeyRequest asks for an API key.
	KeyRequest = keys.Request
	// Scope is something that a key may do: run, read, answer or admin.
	Scope = keys.Scope
)

// CreateKey makes an API key of any tenant. The secret is what callers show; it is
// not stored and can not be had again. From the first key on, servers of this
// runtime's data ask for one.
func (rt *Runtime) CreateKey(ctx context.Context, req KeyRequest) (key *Key, secret string, err error) {
	if err := rt.writable("CreateKey"); err != nil {
		return nil, "", err
	}
	return rt.keys.Create(ctx, req)
}

// Keys lists the API keys of a tenant (empty: of all), oldest first, at most limit
// (0: 50) a page. next is "" when there are no more.
func (rt *Runtime) Keys(ctx context.Context, tenant, cursor string, limit int) (all []*Key, next string, err error) {
	return rt.keys.List(ctx, tenant, cursor, limit)
}

// RevokeKey ends an API key of any tenant, for good. What it has open ends at once.
func (rt *Runtime) RevokeKey(ctx context.Context, id string) (*Key, error) {
	if err := rt.writable("RevokeKey"); err != nil {
		return nil, err
	}
	return rt.keys.Revoke(ctx, "", id)
}

// KeylessServer is [Runtime.Server], and the server may also listen where other
// machines reach it while there is no API key. Everybody there may do everything.
func (rt *Runtime) KeylessServer() (*server.Server, error) {
	if err := rt.writable("KeylessServer"); err != nil {
		return nil, err
	}
	o := rt.serverOptions()
	o.AllowKeyless = true
	return server.New(rt.engine, o), nil
}

// KeysRequired is whether servers of this runtime's data ask for an API key.
func (rt *Runtime) KeysRequired(ctx context.Context) (bool, error) { return rt.keys.Required(ctx) }

func (rt *Runtime) serverOptions() *server.Options {
	s := rt.config.Settings
	return &server.Options{Version: Version(), Metrics: rt.WriteMetrics, Log: rt.log, MaxBody: s.Limits.MaxBodyBytes,
		Origins: s.CORS.Origins, DefaultProfile: s.DefaultProfile, TaskProfile: s.TaskProfile,
		Keys: rt.keys, Schedules: rt.timetable, Memories: memories{rt.agents.learning}, Skills: skillsOf{rt.agents}, Hosts: s.Hosts, CertFile: s.TLS.Cert, KeyFile: s.TLS.Key,
		MaxHeader: s.HTTP.MaxHeaderBytes, HeaderTimeout: s.HTTP.HeaderTimeout.Std(), BodyTimeout: s.HTTP.BodyTimeout.Std(),
		AnswerTimeout: s.HTTP.AnswerTimeout.Std(), WriteTimeout: s.HTTP.WriteTimeout.Std(), IdleTimeout: s.HTTP.IdleTimeout.Std(),
		Heartbeat: s.HTTP.Heartbeat.Std(), Delay: s.HTTP.ShutdownDelay.Std(), Grace: s.HTTP.ShutdownGrace.Std(), RejoinWindow: s.HTTP.RejoinWindow.Std(), UserHeader: s.HTTP.UserHeader,
		ConversationHeader: s.HTTP.ConversationHeader, MaxFile: s.Sessions.MaxFileBytes}
}
