package main

import "slices"

// A Mutant is one deliberate defect and the test that must detect it.
type Mutant struct {
	Name    string
	Breaks  string // the guarantee that it violates
	Patches []Patch
	Test    []string // the arguments of go test, the package last; or "run" and a program that must fail
}

// A Patch replaces a text that occurs exactly once in a file.
type Patch struct{ File, Old, New string }

// anyLease is code that finds a job in any lease instead of the given one.
const anyLease = `	l, err := t.batch(batch)
	if found, _ := t.readBatches("find_batches_of_job", job); len(found) > 0 {
		if t.batches[found[0].id] == nil {
			t.batches[found[0].id] = found[0]
		}
		l = t.batches[found[0].id]
	}
`

// mutants lists all mutants.
var mutants = slices.Concat(coreMutants, controlMutants, feedMutants, workflowMutants, serverMutants)

// coreMutants lists defects of claiming, settling, enqueueing and durability that other job queues have shipped, and similar ones.
var coreMutants = []Mutant{
	{
		Name: "no-fence", Breaks: "a worker whose lease has expired changes nothing (river v0.50, solid_queue#589)",
		Patches: []Patch{
			{"store/sqlite/lease.go", "\tl, err := t.batch(batch)\n", anyLease},
			{"store/sqlite/lease.go", "m != nil && m.token == token", "m != nil"},
		},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/fence", "./store/sqlite"},
	},
	{
		Name: "no-fence-in-a-storm", Breaks: "the same, detected by the chaos test with real processes",
		Patches: []Patch{
			{"store/sqlite/lease.go", "\tl, err := t.batch(batch)\n", anyLease},
			{"store/sqlite/lease.go", "m != nil && m.token == token", "m != nil"},
		},
		Test: []string{"-run", "TestNothingIsLostInAStormOnSQLite", "./cmd/internal/chaos"},
	},
	{
		Name: "state-only-fence", Breaks: "a settlement must hold exactly this lease, not any lease",
		Patches: []Patch{
			{"store/internal/sqltext/settle.postgres.sql", "FROM holdfast_batch WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE", "FROM holdfast_batch WHERE $1::uuid[] IS NOT NULL ORDER BY id FOR UPDATE"},
			{"store/postgres/settle.go", "if l.id == n.Batch {", "if l.find(n.Job) != nil {"},
			{"store/postgres/settle.go", "m != nil && m.token == n.Token", "m != nil"},
		},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/fence", "./store/postgres"},
	},
	{
		Name: "no-token-in-a-transaction", Breaks: "a completion in the caller's transaction must hold exactly this lease",
		Patches: []Patch{{"store/internal/sqltext/settle.postgres.sql", "m.job = $2::uuid AND coalesce(m.token, 1) = $3::integer", "m.job = $2::uuid AND $3::integer >= 0"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/complete", "./store/postgres"},
	},
	{
		Name: "no-token-in-a-transaction-on-sqlite", Breaks: "the same, for SQLite",
		Patches: []Patch{{"store/sqlite/complete.go", "c.batch, c.member = l, l.held(c.Job, c.Token)", "c.batch, c.member = l, l.find(c.Job)"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/complete", "./store/sqlite"},
	},
	{
		Name: "complete-without-asking", Breaks: "the engine does not complete a job whose handler completes it in a transaction",
		Patches: []Patch{{"engine/settle.go", "made.Confirm = o.confirms()", "made.Confirm = false && o.confirms()"}},
		Test:    []string{"-run", "TestAJobWhoseTransactionWasNotCommitted", "./engine"},
	},
	{
		Name: "claims-wade", Breaks: "a claim does not read rows that were claimed before it",
		Patches: []Patch{{"store/postgres/claim_marks.go", "l.marked = !all && len(m.at) > 0 && l.began.Before(m.staleAt)", "l.marked = false"}},
		Test:    []string{"-run", "TestAnOldSnapshotDoesNotSlowClaims", "./store/postgres"},
	},
	{
		Name: "marks-never-sink", Breaks: "a released job is claimed before younger ones",
		Patches: []Patch{{"store/postgres/settle.go", "s.planner.noteJobs(back...)", "s.planner.noteJobs(back[:0]...)"}},
		Test:    []string{"-run", "TestJobsPutBackBehindAMarkAreClaimedFirst", "./store/postgres"},
	},
	{
		Name: "claim-what-was-seen", Breaks: "a claim takes the rows that exist when it writes, not those that it read before",
		Patches: []Patch{{"store/sqlite/claim_take.go", "matched == n || rest[matched].job != columnID(st, 0) || rest[matched].token != st.ColumnInt(1)", "matched == n"}},
		Test:    []string{"-run", "TestAClaimTakesWhatIsThere", "./store/sqlite"},
	},
	{
		Name: "token-lowered-on-release", Breaks: "a token is never lowered (river PR#730, #1290)",
		Patches: []Patch{{"store/sqlite/settle.go", "s.addRow(place, &x.Job, x.Token, m.failures", "s.addRow(place, &x.Job, x.Token-1, m.failures"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/claim", "./store/sqlite"},
	},
	{
		Name: "reclaim-by-id-only", Breaks: "a renewed lease is not reclaimed (river#1302, asynq's recoverer)",
		Patches: []Patch{{"store/internal/sqltext/maintain.postgres.sql", "FROM holdfast_batch WHERE expires_at <= ", "FROM holdfast_batch WHERE '-infinity' <= "}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/reclaim", "./store/postgres"},
	},
	{
		Name: "reclaim-without-new-token", Breaks: "the former worker of a reclaimed job is fenced",
		Patches: []Patch{{"store/sqlite/reclaim.go", "\t\ttaken.token++\n", ""}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/reclaim", "./store/sqlite"},
	},
	{
		Name: "ack-before-commit", Breaks: "an acknowledged write is on disk",
		Patches: []Patch{{"store/sqlite/group_commit.go", "\tif _, err := w.session.exec(\"commit\"); err != nil {",
			"\tfor _, c := range group {\n\t\tc.answer(c.err)\n\t\tc.done = make(chan struct{})\n\t}\n\tif _, err := w.session.exec(\"commit\"); err != nil {"}},
		Test: []string{"run", "./cmd/internal/chaos/powerloss", "-points", "150", "-rounds", "100"},
	},
	{
		Name: "synchronous-normal", Breaks: "an acknowledged write is on disk, even after a power loss",
		Patches: []Patch{{"store/sqlite/open.go", "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"}},
		Test:    []string{"-run", "TestWhatIsAcknowledgedIsSynced", "./store/sqlite"},
	},
	{
		Name: "synchronous-normal-by-power-cut", Breaks: "the same, detected by the simulation of power losses",
		Patches: []Patch{{"store/sqlite/open.go", "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"}},
		Test:    []string{"run", "./cmd/internal/chaos/powerloss", "-points", "50"},
	},
	{
		Name: "dedupe-by-check-then-insert", Breaks: "concurrent enqueues with one key make one job and no error",
		Patches: []Patch{{"store/internal/sqltext/enqueue.postgres.sql", " ORDER BY d.owner, d.kind, d.key\nON CONFLICT DO NOTHING RETURNING owner, kind, key",
			" WHERE NOT EXISTS (SELECT FROM holdfast_unique u WHERE u.owner = d.owner AND u.kind = d.kind AND u.key = d.key)\n ORDER BY d.owner, d.kind, d.key\nRETURNING owner, kind, key"}},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/race", "./store/postgres"},
	},
	{
		Name: "unique-key-not-freed", Breaks: "a unique key is free as soon as its job ends (asynq#275, oban#424)",
		Patches: []Patch{{"store/internal/sqltext/settle.postgres.sql", "DELETE FROM holdfast_unique WHERE job = ANY ($1::uuid[])", "DELETE FROM holdfast_unique WHERE job = ANY ($1::uuid[]) AND false"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/keys", "./store/postgres"},
	},
	{
		Name: "retry-without-its-key", Breaks: "a manual retry takes its unique key again, or is refused (riverui#622)",
		Patches: []Patch{{"store/sqlite/retry.go", "\tif job.uniqueKey != \"\" {", "\tif false {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/retry", "./store/sqlite"},
	},
	{
		Name: "cancel-ignored-by-settle", Breaks: "an accepted cancel takes effect (river PR#1397)",
		Patches: []Patch{{"store/internal/sqltext/settle.sqlite.sql", "SELECT EXISTS (SELECT 1 FROM holdfast_cancel), ", "SELECT 0, "}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/operate", "./store/sqlite"},
	},
	{
		Name: "process-clock", Breaks: "the database's clock decides, not the worker's",
		Patches: []Patch{{"store/postgres/settle.go", "\tt.p.queueRow(t.s.sql[\"now\"], nil, &t.now)\n", "\tt.now = time.Now()\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/settle", "./store/postgres"},
	},
	{
		Name: "two-step-promote", Breaks: "a due job is promoted once (sidekiq PR#1495)",
		Patches: []Patch{{"store/internal/sqltext/maintain.sqlite.sql", "DELETE FROM holdfast_later\n WHERE (due_at, job) <= ($1, $2) AND EXISTS", "DELETE FROM holdfast_later\n WHERE (due_at, job) <= ($1, $2) AND NOT EXISTS"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/keep", "./store/sqlite"},
	},
	{
		Name: "early-promote", Breaks: "no job starts before its time",
		Patches: []Patch{{"store/internal/sqltext/maintain.postgres.sql", "WHERE l.due_at <= (SELECT now FROM clock) ORDER BY", "WHERE l.due_at <= (SELECT now FROM clock) + interval '10 seconds' ORDER BY"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/enqueue", "./store/postgres"},
	},
	{
		Name: "poison-row-aborts-the-batch", Breaks: "a row that cannot be read fails alone (river PR#1324, asynq#1140)",
		Patches: []Patch{{"store/sqlite/facts.go", "\tl.Corrupt = strings.Join(wrong, \"; \")\n", "\tif l.Corrupt = strings.Join(wrong, \"; \"); l.Corrupt != \"\" {\n\t\tpanic(l.Corrupt)\n\t}\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/poison", "./store/sqlite"},
	},
	{
		Name: "one-call-fails-the-group", Breaks: "a call that fails does not affect calls in the same commit (river PR#258)",
		Patches: []Patch{{"store/sqlite/group_commit.go", "c.err = t.inSavepoint(func() error { return c.runIsolated(t) })", "c.err = c.runIsolated(t)"}},
		Test:    []string{"-run", "TestCallsThatWaitTogether", "./store/sqlite"},
	},
	{
		Name: "renewals-stop-at-drain", Breaks: "leases are renewed until the last settlement is written (solid_queue#568)",
		Patches: []Patch{{"engine/engine.go", "renewing, stopRenewing := context.WithCancel(e.storeCtx)", "renewing, stopRenewing := context.WithCancel(claiming)"}},
		Test:    []string{"-run", "TestADrainOfThreeLeases", "./engine"},
	},
	{
		Name: "run-late", Breaks: "a job never starts after its expiry",
		Patches: []Patch{{"engine/check_start.go", "case !lease.ExpireAt.IsZero() && !lease.AsOf.Add(a.elapsed()).Before(lease.ExpireAt):", "case false:"}},
		Test:    []string{"-run", "TestAJobPastItsExpiryIsNotRun", "./cmd/internal/chaos"},
	},
	{
		Name: "wake-without-poll", Breaks: "losing every wake-up costs at most one poll (oban#493)",
		Patches: []Patch{{"engine/duties.go", "run: e.claimer.claim, interval: e.cfg.Poll,", "run: e.claimer.claim, interval: 24 * time.Hour,"}},
		Test:    []string{"-run", "TestLosingEveryWakeUp", "./engine"},
	},
	{
		Name: "backoff-in-float64", Breaks: "no number of failures overflows a delay (river PR#698, #1402)",
		Patches: []Patch{
			{"failure/backoff.go", "\tfor ; n > 1 && factor > 1 && delay < limit; n-- {\n\t\tif delay > limit/factor {\n\t\t\tdelay = limit\n\t\t\tbreak\n\t\t}\n\t\tdelay *= factor\n\t}\n",
				"\tdelay = min(time.Duration(float64(delay)*math.Pow(float64(factor), float64(n-1))), limit)\n"},
			{"failure/backoff.go", "\t\"math/bits\"\n", "\t\"math\"\n\t\"math/bits\"\n"},
		},
		Test: []string{"-run", "TestBackoffAfterHundreds|TestDelaysAreExact|TestADelayIsNeverNegative", "./failure"},
	},
	{
		Name: "crash-spends-an-attempt", Breaks: "a lost worker does not count as a failed attempt (asynq#1015)",
		Patches: []Patch{{"failure/decide.go", "To: holdfast.Queued, Delay: delay, Charge: store.ChargeCrash, Limit: limit,", "To: holdfast.Queued, Delay: delay, Charge: store.ChargeFailure, Limit: limit,"}},
		Test:    []string{"-run", "TestEveryEventHasItsVerdict", "./failure"},
	},
}
