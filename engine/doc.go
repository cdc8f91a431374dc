// Package engine runs jobs: it claims them from a store, calls their handlers, and settles the outcome of every attempt.
//
// An Engine is made of parts, which New wires. Each is a type with its own state; none knows the Engine. A lease passes through three of them:
//
//   - The claimer (claim.go) claims jobs from the store, as many as there are free slots plus a few ahead.
//   - The runner (run.go) calls the handler, unless the attempt must not start (check_start.go): unreadable or expired jobs, unknown kinds, leases
//     that may have expired, open breakers.
//   - The settler (settle.go) decides what the outcome means and writes it to the store.
//
// The lease table (lease_table.go) holds every lease on this path, and the lease keeper (renew.go, watch.go) keeps them. Reports of remote workers
// (remote_report.go) enter at the settler.
//
// Beside these steps run the duties (duties.go): functions called at intervals that renew leases, watch handlers, reclaim, promote and expire
// jobs, keep breakers, budgets, limits and start deadlines up to date, and advance redrives, schedules, groups and retention.
//
// The engine makes no decision about failures: failure.Decide does, and settle.go is its only caller. Nor does it decide when a breaker
// changes its state: package breaker does.
//
// Holds live in the store and take effect there, at the claim. All processes that share a store maintain them by compare-and-set, so each
// change is made once, by one process, and no process is needed for it: there is no leader.
package engine
