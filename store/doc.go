// Package store defines what a store does: it is the contract between the engine, the operator service and the databases.
// Applications need it for the type of an open store, and for filters, holds and events; authors of stores implement it and
// prove it with package storetest.
//
// A [Store] is the only place where jobs change. It is composed of roles:
//
//   - [holdfast.Enqueuer] accepts jobs and groups;
//   - [Claimer] is what workers use: a [Claim] leases due jobs, a [Renewal] keeps the [Lease] alive, a [Settlement] ends it;
//   - [Maintainer] is what duties use: changes that time brings, and records that all processes share;
//   - [Operator] is how people intervene: retry, cancel, edit, pause;
//   - [Inspector], [Analyst] and [Grouper] answer questions;
//   - [Archiver] keeps events and tombstones, and deletes by retention.
//
// Package sqlite keeps jobs in a file, package postgres in a PostgreSQL database; package anystore opens either by its address.
// Both give the same answers, which storetest proves.
//
// # Time
//
// The store has the only clock. Callers give durations, and the store turns them into points in time, so the clocks of
// machines need not agree.
package store
