package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"agentd/internal/engine"
	"agentd/internal/run"
)

// meters are what is counted.
type meters struct {
	operation, firstChunk, toolTime, runTime, commitTime metric.Float64Histogram
	tokens                                               metric.Int64Histogram
	runs, steps, tools, commits, failures                metric.Int64Counter
	cost                                                 metric.Float64Counter
	cacheTokens, cacheBreaks                             metric.Int64Counter
	cacheSaved                                           metric.Float64UpDownCounter
	sets                                                 map[string][]metric.MeasurementOption // by their labels
}

// Buckets of the convention for durations and tokens.
func operationBuckets() metric.HistogramOption {
	return metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
}

func newMeters(m metric.Meter, o *Options, s *sink) (*meters, error) {
	out := &meters{sets: map[string][]metric.MeasurementOption{}}
	var errs []error
	hist := func(into *metric.Float64Histogram, name, help string, opts ...metric.Float64HistogramOption) {
		h, err := m.Float64Histogram(name, append(opts, metric.WithUnit("s"), metric.WithDescription(help))...)
		*into = h
		errs = append(errs, err)
	}
	counter := func(into *metric.Int64Counter, name, help string) {
		c, err := m.Int64Counter(name, metric.WithDescription(help))
		*into = c
		errs = append(errs, err)
	}
	hist(&out.operation, "gen_ai.client.operation.duration", "Duration of model calls.", operationBuckets())
	hist(&out.firstChunk, "gen_ai.client.operation.time_to_first_chunk", "Time until the first piece of a reply.", operationBuckets())
	hist(&out.toolTime, "agentd.tool.duration", "Duration of tool calls that ran.", operationBuckets())
	hist(&out.runTime, "agentd.run.duration", "Time from start to end of runs, waits for people included.",
		metric.WithExplicitBucketBoundaries(0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 86400))
	hist(&out.commitTime, "agentd.commit.duration", "Duration of commits to the store.",
		metric.WithExplicitBucketBoundaries(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5))
	var err error
	out.tokens, err = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Tokens of model calls; input includes what was cached."),
		metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	errs = append(errs, err)
	out.cost, err = m.Float64Counter("agentd.cost", metric.WithUnit("USD"), metric.WithDescription("Cost of model calls in US dollars."))
	errs = append(errs, err)
	out.cacheSaved, err = m.Float64UpDownCounter("agentd.cache.saved", metric.WithUnit("USD"), metric.WithDescription("What providers' prompt caches saved, in US dollars; less than nothing where writing cost more."))
	errs = append(errs, err)
	counter(&out.cacheTokens, "agentd.cache.tokens", "Tokens of prompts by how they were paid: read and written (from and to a provider's cache), uncached.")
	counter(&out.cacheBreaks, "agentd.cache.breaks", "Requests that were no extension of the one before, by the first part that changed: model, tool, section, settings, message.")
	counter(&out.runs, "agentd.runs", "Runs that reached a status: running, paused_checkpoint, completed, failed, cancelled.")
	counter(&out.steps, "agentd.steps", "Replies of models.")
	counter(&out.failures, "agentd.model.failures", "Model calls that failed, by class.")
	counter(&out.tools, "agentd.tool.calls", "Tool calls by outcome: ok, error, denied.")
	counter(&out.commits, "agentd.commits", "Commits to the store by outcome: ok, error.")
	errs = append(errs, watchLoad(m, o, s))
	return out, errors.Join(errs...)
}

// maxSets bounds the memory of made attribute sets. Labels come from the
// configuration and from fixed sets, so it is never reached where names are sane.
const maxSets = 4096

// with gives the option for labels: pairs of names and values. Making a set costs
// more than counting, so they are kept. It is for one goroutine.
func (m *meters) with(pairs ...string) []metric.MeasurementOption {
	key := strings.Join(pairs, "\x00")
	if o, ok := m.sets[key]; ok {
		return o
	}
	var kvs []attribute.KeyValue
	for i := 0; i+1 < len(pairs); i += 2 {
		kvs = append(kvs, attribute.String(pairs[i], pairs[i+1]))
	}
	o := []metric.MeasurementOption{metric.WithAttributeSet(attribute.NewSet(kvs...))}
	if len(m.sets) < maxSets {
		m.sets[key] = o
	}
	return o
}

// count and record are the SDK's calls with labels that are kept.
func count(c metric.Int64Counter, n int64, o []metric.MeasurementOption) {
	c.Add(context.Background(), n, metric.AddOption(o[0]))
}

func record(h metric.Float64Histogram, v float64, o []metric.MeasurementOption) {
	h.Record(context.Background(), v, metric.RecordOption(o[0]))
}

func (m *meters) run(s *engine.RunSeen) {
	o := m.with("profile", s.Profile, "status", string(s.Status))
	count(m.runs, 1, o)
	if s.Status.Ended() && s.Started > 0 {
		record(m.runTime, float64(s.Ended-s.Started)/1000, o)
	}
}

func (m *meters) model(s *engine.ModelSeen) {
	provider := providerName(s.Provider)
	o := m.with(opKey, "chat", providerKey, provider, requestModel, s.Model)
	if !s.First.IsZero() {
		record(m.firstChunk, s.First.Sub(s.Start).Seconds(), o)
	}
	took := s.End.Sub(s.Start).Seconds()
	if s.Reply == nil {
		count(m.failures, 1, m.with(providerKey, provider, requestModel, s.Model, errorType, s.Class))
		record(m.operation, took, m.with(opKey, "chat", providerKey, provider, requestModel, s.Model, errorType, s.Class))
	} else {
		count(m.steps, 1, m.with("profile", s.Profile))
		record(m.operation, took, o)
	}
	if s.Broken != nil {
		count(m.cacheBreaks, 1, m.with("profile", s.Profile, "part", s.Broken.Part))
	}
	u := s.Usage
	if u == nil {
		return
	}
	for _, tokens := range []struct {
		kind string
		n    int64
	}{{"read", u.CacheRead}, {"written", u.CacheWrite}, {"uncached", u.Input}} {
		if tokens.n > 0 {
			count(m.cacheTokens, tokens.n, m.with(providerKey, provider, requestModel, s.Model, "kind", tokens.kind))
		}
	}
	if s.Saved != 0 {
		m.cacheSaved.Add(context.Background(), dollars(s.Saved), metric.AddOption(m.with("profile", s.Profile, requestModel, s.Model)[0]))
	}
	for _, tokens := range []struct {
		kind string
		n    int64
	}{{"input", u.Prompt()}, {"output", u.Output}} {
		o := m.with(opKey, "chat", providerKey, provider, requestModel, s.Model, tokenType, tokens.kind)
		m.tokens.Record(context.Background(), tokens.n, metric.RecordOption(o[0]))
	}
	if c := u.Cost.Total; c > 0 {
		m.cost.Add(context.Background(), dollars(c), metric.AddOption(m.with("profile", s.Profile, requestModel, s.Model)[0]))
	}
}

func (m *meters) tool(s *engine.ToolSeen) {
	name := s.Name
	if !s.Known {
		name = "(unknown)"
	}
	count(m.tools, 1, m.with("tool", name, "outcome", s.Outcome))
	if s.Outcome != engine.ToolDenied {
		record(m.toolTime, s.End.Sub(s.Start).Seconds(), m.with("tool", name))
	}
}

func (m *meters) commit(took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	o := m.with("outcome", outcome)
	count(m.commits, 1, o)
	record(m.commitTime, took.Seconds(), o)
}

// watchLoad registers the gauges.
func watchLoad(m metric.Meter, o *Options, s *sink) error {
	var all []metric.Observable
	var errs []error
	gauge := func(name, help string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithDescription(help))
		errs = append(errs, err)
		all = append(all, g)
		return g
	}
	dropped, err := m.Int64ObservableCounter("agentd.telemetry.dropped", metric.WithDescription("Spans (traces), log records (logs) and collections of metrics (metrics) that could not be delivered."))
	errs = append(errs, err)
	all = append(all, dropped)
	active := gauge("agentd.runs.active", "Runs that have not ended, by status.")
	driven := gauge("agentd.runs.driven", "Runs in memory.")
	slots := gauge("agentd.queue.slots", "Runs that wait for a free place (limits.max_concurrent_runs).")
	lanes := gauge("agentd.queue.sessions", "Runs that wait for their turn in their session.")
	readers := gauge("agentd.readers", "Clients that follow a run's events.")
	broken := gauge("agentd.store.broken", "1 while the store refuses commits.")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = m.RegisterCallback(func(ctx context.Context, obs metric.Observer) error {
		for _, kind := range []string{"traces", "logs", "metrics"} {
			obs.ObserveInt64(dropped, s.lost(kind).Load(), metric.WithAttributes(attribute.String("kind", kind)))
		}
		if o.Load == nil {
			return nil
		}
		// A store that does not answer takes the counts of runs away, and not what tells
		// that it does not.
		l, err := o.Load(ctx)
		for _, st := range []run.Status{run.Queued, run.Running, run.Paused} {
			if err != nil {
				break
			}
			obs.ObserveInt64(active, int64(l.Runs[st]), metric.WithAttributes(attribute.String("status", string(st))))
		}
		obs.ObserveInt64(driven, int64(l.Driven))
		obs.ObserveInt64(slots, int64(l.Waiting))
		obs.ObserveInt64(lanes, int64(l.Lined))
		obs.ObserveInt64(readers, int64(l.Readers))
		n := int64(0)
		if l.Broken {
			n = 1
		}
		obs.ObserveInt64(broken, n)
		return nil
	}, all...)
	return err
}
