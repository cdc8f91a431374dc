// Package telemetry exports metrics for Prometheus and spans for OpenTelemetry, and generates a Grafana dashboard and alert rules
// from the same metric names. It uses only the hooks of an engine, and an ops.Operator to read the store.
//
//	metrics := telemetry.New(telemetry.Config{Source: ops.New(jobs, ops.Config{})})
//	tracing := telemetry.NewTracing(nil)
//	worker, err := engine.New(jobs, engine.Config{
//		OnAttemptEnd: metrics.ObserveAttempt, Middleware: []func(engine.Handler) engine.Handler{tracing.Middleware()},
//	})
//	http.Handle("/metrics", metrics.Handler())
//
// A program that sends its metrics with OpenTelemetry gives Config.MeterProvider.
//
// Label values are limited in number: a value beyond the limit is counted as "other".
package telemetry
