// Package telemetry makes OpenTelemetry traces and metrics, Prometheus' text form
// and log lines of what the engine tells its observer.
//
// It is the one package that knows OpenTelemetry's SDK. Names follow the semantic
// conventions for generative AI (version 1.41). It promises:
//
//   - A run is not held up by what a collector does: spans and log records wait in
//     bounded buffers, and what does not fit or can not be delivered is dropped and
//     counted.
//   - A trace is a tree of runs. Its ids are made of the runs' own ids, so that a
//     run which goes on after a restart, and its subagents, are in the same trace,
//     and whether it is sampled is the same everywhere.
//   - Spans hold no prompts, arguments, results or texts of replies. Errors in them
//     are redacted.
//   - Labels of metrics come from the configuration and from fixed sets, never from
//     what a model made up.
//
// OTLP is written as JSON, to files (one request a line) and over HTTP. The SDK's
// own exporters would do that with protocol buffers and gRPC, twelve megabytes of
// program for an encoding that every collector takes as JSON too.
package telemetry
