package main

// serverMutants lists typical defects of servers.
var serverMutants = []Mutant{
	{
		Name: "foreign-job-is-there", Breaks: "a job of another owner is answered like one that does not exist (OWASP API1)",
		Patches: []Patch{{"server/gate.go", "|| err == nil && job.Owner != c.Owner {", "|| err == nil && job.Owner == c.Owner+\"?\" {"}},
		Test:    []string{"-run", "TestForeignJobsAreAnswered", "./server"},
	},
	{
		Name: "any-key-may", Breaks: "a key may do what its scope allows and nothing else (OWASP API5)",
		Patches: []Patch{{"server/gate.go", "if !c.Scope.Allows(to.scope) && (", "if c.Scope == \"\" && ("}},
		Test:    []string{"-run", "TestOnlyAllowedScopesMayCallEachRoute", "./server"},
	},
	{
		Name: "revoked-key-opens", Breaks: "a revoked key is refused within a second",
		Patches: []Patch{{"server/keyring.go", "case !k.RevokedAt.IsZero():", "case false:"}, {"apikey/key.go", "return k.RevokedAt.IsZero() && (", "return ("}},
		Test:    []string{"-run", "TestANewKeyWorksAtOnce", "./server"},
	},
	{
		Name: "any-name-is-local", Breaks: "a request under a foreign host name is not served (DNS rebinding)",
		Patches: []Patch{{"server/gate.go", "if !isLocal(r) || !strings.EqualFold(", "if !isLocal(r) || host == \"\" && !strings.EqualFold("}},
		Test:    []string{"-run", "TestWithoutKeysOnlyThisMachine", "./server"},
	},
	{
		Name: "misspelled-filter-selects-all", Breaks: "an unknown parameter is refused",
		Patches: []Patch{{"internal/api/param.go", "if !slices.Contains(known, name) {", "if name == \"\" && !slices.Contains(known, name) {"}},
		Test:    []string{"-run", "TestParametersAreReadStrictly", "./internal/api"},
	},
	{
		Name: "reports-move-no-breaker", Breaks: "reports of remote workers count for breakers like local attempts",
		Patches: []Patch{{"engine/remote_report.go", "if answers[i] == nil && r.seen.countOnce(o) {", "if answers[i] != nil && r.seen.countOnce(o) {"}},
		Test:    []string{"-run", "TestFiveBadReports", "./engine"},
	},
	{
		Name: "stale-report-counts", Breaks: "a report whose lease is lost changes nothing, not even a breaker",
		Patches: []Patch{{"engine/remote_report.go", "if answers[i] == nil && r.seen.countOnce(o) {", "if r.seen.countOnce(o) {"}},
		Test:    []string{"-run", "TestAStaleReportChangesNothing", "./engine"},
	},
	{
		Name: "claim-does-not-see-an-edit", Breaks: "a job runs with its edited arguments, not with the former ones",
		Patches: []Patch{{"store/sqlite/claim_take.go", "edits != p.edits || ", "edits < p.edits || "}},
		Test:    []string{"-run", "TestAClaimHandsOutWhatWasEdited", "./store/sqlite"},
	},
	{
		Name: "restore-gives-tokens-again", Breaks: "no token is given twice, also after a restore",
		Patches: []Patch{{"store/sqlite/backup.go", "const tokenLeap = 1 << 20", "const tokenLeap = 0"}},
		Test:    []string{"-run", "TestNoTokenIsGivenTwice", "./store/sqlite"},
	},
	{
		Name: "only-the-name-is-checked", Breaks: "an address is checked when the connection is made, after the name was resolved (DNS rebinding)",
		Patches: []Patch{{"internal/safehttp/safehttp.go", "\t\tdialer.Control = func(", "\t\t_ = func("}},
		Test:    []string{"-run", "TestASecondDNSAnswerIsCheckedToo|TestNoNameReachesAPrivateAddress", "./internal/safehttp"},
	},
	{
		Name: "first-key-locks-nothing", Breaks: "a server without keys requires them as soon as there is one",
		Patches: []Patch{{"server/keyring.go", "if len(records) > 0 {", "if len(records) < 0 {"}},
		Test:    []string{"-run", "TestTheFirstKeyLocks", "./server"},
	},
	{
		Name: "proxy-is-local", Breaks: "without keys, a request that came through a proxy is refused",
		Patches: []Patch{{"server/gate.go", "if proxy := proxied(r); proxy != \"\" {", "if proxy := proxied(r); proxy == \"?\" {"}},
		Test:    []string{"-run", "TestWithoutKeysRequestsThroughAProxy", "./server"},
	},
	{
		Name: "upload-outlives-its-key", Breaks: "requests in progress end when their key is revoked or expires",
		Patches: []Patch{{"server/keyring_lifetime.go", "\t\t\tl.end(err)\n\t\t\tdelete(k.lifetimes, id)", "\t\t\tdelete(k.lifetimes, id)"}},
		Test:    []string{"-run", "TestTheLifetimeOfAVisitor|TestABulkStream", "-timeout", "30s", "./server"},
	},
	{
		Name: "anybody-delivers", Breaks: "no caller can enqueue a job that is signed as a notification",
		Patches: []Patch{{"reserve.go", "if strings.EqualFold(queue, reservedQueue) {", "if queue == reservedQueue+\"?\" {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/reserve", "./store/sqlite"},
	},
	{
		Name: "forged-delivery-is-signed", Breaks: "a delivery belongs to its subscription and contains what the feed contains",
		Patches: []Patch{{"notify/deliver.go", "if job.Owner != subscription.Owner(l.Subscription) || job.Queue", "if job.Queue"}},
		Test:    []string{"-run", "TestADeliveryThatTheNotifierDidNotMake", "./notify"},
	},
	{
		Name: "request-id-swallows-a-redrive", Breaks: "a redrive is identified by its idempotency key and its content",
		Patches: []Patch{{"server/redrive.go", "mine.Token = digest(name + mine.Digest)", "mine.Token = o.Request"}},
		Test:    []string{"-run", "TestTwoRequestsWithOneRequestId", "./server"},
	},
	{
		Name: "body-names-the-actor", Breaks: "over HTTP the actor of a change by a worker is its key",
		Patches: []Patch{{"server/worker.go", "if c.isWorker() {\n\t\treturn breaker.System + \" (key \" + c.Name + \")\"\n\t}\n\treturn c.actor(given)", "return given"}},
		Test:    []string{"-run", "TestTheActorOfAWorkersChangeIsItsKey", "./server"},
	},
	{
		Name: "worker-lifts-an-operators-hold", Breaks: "only operators place and lift holds of operators",
		Patches: []Patch{{"server/worker.go", "if err := s.mayHold(ctx, c, change, breakers); err != nil {", "if err := s.mayHold(ctx, c, &store.Change{Place: change.Place}, breakers); err != nil {"}},
		Test:    []string{"-run", "TestAWorkerNeitherPlacesNorLiftsAnOperatorsHold", "./server"},
	},
	{
		Name: "bound-key-reads-elsewhere", Breaks: "a key that is bound to queues sees only jobs of these queues",
		Patches: []Patch{{"server/bind.go", "err == nil && !c.worksOn(job.Queue, job.Kind) {", "err == nil && !c.worksOn(c.Queues[0], job.Kind) {"}},
		Test:    []string{"-run", "TestABoundKeySettlesRenewsAndReadsNoJobElsewhere", "./server"},
	},
	{
		Name: "worker-chooses-what-is-forgotten", Breaks: "the server's configuration decides what a worker may delete",
		Patches: []Patch{{"server/worker.go", "older = max(older, keep)", "_ = keep"}},
		Test:    []string{"-run", "TestAWorkerChoosesNeitherWhatIsPurgedNorWhatIsForgotten", "./server"},
	},
	{
		Name: "wiped-audit-log-passes", Breaks: "the integrity check reports a wiped audit log",
		Patches: []Patch{{"store/internal/inspect/chain.go", "\t\tc.checkAnchor()\n", ""}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/chain", "./store/sqlite"},
	},
	{
		Name: "forgetting-leaves-no-mark", Breaks: "the audit log records what retention deleted from was deleted from it",
		Patches: []Patch{{"store/sqlite/retention.go", "return mark.Lines, t.addEvent(&line)", "_ = line\n\treturn mark.Lines, nil"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/chain", "./store/sqlite"},
	},
	{
		Name: "bodies-starve-workers", Breaks: "a worker can renew its leases while request bodies use up the memory",
		Patches: []Patch{{"server/memory.go", "if !small || !a.vital {", "if true {"}},
		Test:    []string{"-run", "TestWorkersAreServedWhenBodiesUseAllMemory", "./server"},
	},
	{
		Name: "surplus-kept", Breaks: "jobs of a claim that exceed its memory limit are released at once",
		Patches: []Patch{{"store/postgres/claim.go", "\ts.releaseExcess(ctx, excess)\n", "\t_ = excess\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/claim", "./store/postgres"},
	},
	{
		Name: "claims-without-end", Breaks: "a claim returns no more than its memory limit allows",
		Patches: []Patch{{"store/sqlite/claim_plan.go", "p.full = from.bytes > 0 &&", "p.full = false &&"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/claim", "./store/sqlite"},
	},
}
