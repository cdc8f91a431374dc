// Package telemetry counts and traces for machines that watch over Holdfast: metrics as Prometheus reads them, spans as OpenTelemetry means
// them, and a dashboard and alert rules that are written from the same names. It needs nothing of the engine but its hooks, and of the
// store but an operator's desk.
package telemetry
