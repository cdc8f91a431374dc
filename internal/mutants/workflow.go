package main

// workflowMutants lists typical defects of order keys, replacement, conditions, jobs that jobs enqueue and chunks.
var workflowMutants = []Mutant{
	{
		Name: "line-moves-on-too-early", Breaks: "a job with an order key starts after the one before it has ended",
		Patches: []Patch{{"store/internal/sqltext/order.sqlite.sql", "j.id IS NULL OR f.job IS NOT NULL AND NOT (o.hold", "j.id IS NULL OR l.job IS NULL AND NOT (o.hold"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/order", "./store/sqlite"},
	},
	{
		Name: "line-moves-on-too-early-on-postgresql", Breaks: "the same, for PostgreSQL",
		Patches: []Patch{{"store/internal/sqltext/order.postgres.sql", "AND (f.job IS NULL OR o.hold AND f.state = 'failed' AND f.discarded_at IS NULL)", "AND EXISTS (SELECT FROM holdfast_later x WHERE x.job = o.job)"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/order", "./store/postgres"},
	},
	{
		Name: "retry-loses-its-place", Breaks: "a job that waits for a retry keeps the jobs behind it in its line waiting",
		Patches: []Patch{{"store/sqlite/settle.go", "\tif to == holdfast.Queued {\n\t\treturn s.returnToQueue(x, m)\n\t}",
			"\tif to == holdfast.Queued {\n\t\tif err := leaveLine(unbatched{s.tx}, s.now, x.Job, false); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn s.returnToQueue(x, m)\n\t}"}},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/order", "./store/sqlite"},
	},
	{
		Name: "dead-letter-holds-no-line", Breaks: "a dead letter with OrderHold lets no job of its line pass",
		Patches: []Patch{{"store/sqlite/order.go", "\tif hold && deadLetter {\n", "\tif hold && deadLetter && false {\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/order", "./store/sqlite"},
	},
	{
		Name: "dead-letter-holds-no-line-on-postgresql", Breaks: "the same, for PostgreSQL",
		Patches: []Patch{{"store/postgres/settle.go", "case holds && to == holdfast.Failed && !n.Failure.Benign:", "case holds && to == \"?\":"}, {"store/internal/sqltext/order.postgres.sql", "AND (f.job IS NULL OR o.hold AND f.state = 'failed' AND f.discarded_at IS NULL)", "AND f.job IS NULL"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/order", "./store/postgres"},
	},
	{
		Name: "replaced-while-it-runs", Breaks: "a draft never replaces the content of a job that was claimed",
		Patches: []Patch{{"store/internal/sqltext/enqueue.sqlite.sql", " WHERE j.id = $1 AND (l.job IS NOT NULL OR r.job IS NOT NULL)", " WHERE j.id = $1"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/replace", "./store/sqlite"},
	},
	{
		Name: "replaced-after-a-claim", Breaks: "the same, for a job that was released, on PostgreSQL",
		Patches: []Patch{
			{"store/internal/sqltext/enqueue.postgres.sql", "WHERE job = $1::uuid AND token = 0 AND generation = 1 FOR UPDATE", "WHERE job = $1::uuid FOR UPDATE"},
			{"store/internal/sqltext/enqueue.postgres.sql", "WHERE j.id = $1::uuid AND r.token = 0 AND r.generation = 1 FOR UPDATE OF r", "WHERE j.id = $1::uuid FOR UPDATE OF r"},
		},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/replace", "./store/postgres"},
	},
	{
		Name: "replaced-but-for-its-arguments", Breaks: "a replaced job runs with the arguments of the last draft",
		Patches: []Patch{{"store/internal/sqltext/enqueue.sqlite.sql", "unique_done = $8, args = $9,", "unique_done = $8, args = coalesce(args, $9),"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/replace", "./store/sqlite"},
	},
	{
		Name: "debounce-without-end", Breaks: "a job that is put off by every draft starts at its maximum age",
		Patches: []Patch{{"store/internal/rule/replace.go", "d.Replace.MaxAge > 0 && r.Due.After(latest) {", "d.Replace.MaxAge > 0 && r.Due.After(latest) && false {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/replace", "./store/sqlite"},
	},
	{
		Name: "condition-met-by-any-end", Breaks: "a member does not start if its condition cannot hold",
		Patches: []Patch{{"store/internal/rule/follow.go", "\tif e.On == holdfast.OnFailed || e.On == holdfast.OnCancelled {\n\t\treturn string(e.On)", "\tif e.On == holdfast.OnFailed && e.On == holdfast.OnCancelled {\n\t\treturn string(e.On)"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/condition", "./store/sqlite"},
	},
	{
		Name: "skipped-member-counts-as-cancelled", Breaks: "a member that was not needed does not make its group partial",
		Patches: []Patch{{"group.go", "m.Complete == m.Total-m.Skipped", "m.Complete == m.Total"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/condition", "./store/sqlite"},
	},
	{
		Name: "cancelled-member-is-skipped", Breaks: "a member that needed a success which did not come counts as cancelled",
		Patches: []Patch{{"store/internal/rule/follow.go", "f.End, f.Skipped, f.Cause = true, u.skips(), u", "f.End, f.Skipped, f.Cause = true, true, u"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/condition", "./store/sqlite"},
	},
	{
		Name: "enqueued-without-the-lease", Breaks: "a settlement without the lease enqueues nothing",
		Patches: []Patch{{"store/sqlite/settle.go", "\tif m == nil {\n\t\treturn s.answerLate(x)\n\t}",
			"\tif m == nil {\n\t\tif answer, err = s.answerLate(x); err == nil && answer != nil && len(x.Enqueue) > 0 {\n\t\t\terr = s.enqueueDrafts(x)\n\t\t}\n\t\treturn answer, err\n\t}"}},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/settle_enqueue", "./store/sqlite"},
	},
	{
		Name: "enqueued-again-when-repeated", Breaks: "a settlement that is repeated enqueues its jobs once",
		Patches: []Patch{{"store/postgres/settle.go", "to == attempted || to == ended {\n\t\t\t\tt.answers[i] = nil\n", "to == attempted || to == ended {\n\t\t\t\tt.answers[i] = nil\n\t\t\t\tif len(n.Enqueue) > 0 {\n\t\t\t\t\tt.drafted = append(t.drafted, i)\n\t\t\t\t}\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/settle_enqueue", "./store/postgres"},
	},
	{
		Name: "enqueued-by-a-cancelled-job", Breaks: "a job that is cancelled enqueues nothing",
		Patches: []Patch{{"store/postgres/settle.go", "if len(n.Enqueue) > 0 && !t.cancels[n.Job] {", "if len(n.Enqueue) > 0 {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/settle_enqueue", "./store/postgres"},
	},
	{
		Name: "enqueued-when-refused", Breaks: "a job whose drafts are refused is not completed",
		Patches: []Patch{{"store/sqlite/settle.go", "if err := t.inSavepoint(settle); rule.IsRefusal(err) {", "if err := settle(); rule.IsRefusal(err) {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/settle_enqueue", "./store/sqlite"},
	},
	{
		Name: "enqueued-twice-after-a-completion", Breaks: "the drafts of a job that was completed in a transaction are enqueued by that transaction alone",
		Patches: []Patch{{"engine/settle.go", "\t\tmade.Enqueue = nil", "\t\t_ = made.Enqueue"}},
		Test:    []string{"-run", "TestACompletionInATransactionEnqueuesJobsOnceAndOnlyIfItCommits", "./engine"},
	},
	{
		Name: "sealed-group-misses-new-members", Breaks: "a group does not settle before the members that its members have added",
		Patches: []Patch{{"store/postgres/settle_enqueue.go", "\tif len(added) == 0 {\n\t\treturn nil\n\t}\n\treturn q.exec(", "\tif true {\n\t\treturn nil\n\t}\n\treturn q.exec("}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/settle_enqueue", "./store/postgres"},
	},
	{
		Name: "chunk-judged-as-one", Breaks: "each job of a chunk is judged by its own error",
		Patches: []Patch{{"engine/chunk.go", "m.err = errs[i]", "m.err = errs[i*0]"}},
		Test:    []string{"-run", "TestAChunkIsHandledInOneCallAndEachJobIsJudgedApart", "./engine"},
	},
}
