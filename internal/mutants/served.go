package main

// served are the defects that servers are known for.
var served = []Mutant{
	{
		Name: "foreign-job-is-there", Breaks: "what is somebody else's answers like what does not exist (OWASP API1)",
		Patches: []Patch{{"server/gate.go", "|| err == nil && job.Owner != c.Owner {", "|| err == nil && job.Owner == c.Owner+\"?\" {"}},
		Test:    []string{"-run", "TestWhatIsForeign", "./server"},
	},
	{
		Name: "any-key-may", Breaks: "a key does what its scope allows and nothing else (OWASP API5)",
		Patches: []Patch{{"server/gate.go", "if !c.Scope.Allows(to.scope) && (", "if c.Scope == \"\" && ("}},
		Test:    []string{"-run", "TestTheGateLetsThroughWhoMay", "./server"},
	},
	{
		Name: "revoked-key-opens", Breaks: "a revoked key is refused within a second",
		Patches: []Patch{{"server/keyring.go", "case !k.RevokedAt.IsZero():", "case false:"}, {"apikey/key.go", "return k.RevokedAt.IsZero() && (", "return ("}},
		Test:    []string{"-run", "TestAKeyMadeAMomentAgo", "./server"},
	},
	{
		Name: "any-name-is-local", Breaks: "a page that found the way here by a name of its own is not served (DNS rebinding)",
		Patches: []Patch{{"server/gate.go", "if !isLocal(r) || !strings.EqualFold(", "if !isLocal(r) || host == \"\" && !strings.EqualFold("}},
		Test:    []string{"-run", "TestWithoutKeysOnlyThisMachine", "./server"},
	},
	{
		Name: "misspelled-filter-selects-all", Breaks: "a parameter that nobody knows is refused",
		Patches: []Patch{{"api/param.go", "if !slices.Contains(known, name) {", "if name == \"\" && !slices.Contains(known, name) {"}},
		Test:    []string{"-run", "TestParametersAreReadStrictly", "./api"},
	},
	{
		Name: "reports-move-no-breaker", Breaks: "a worker in another language has the same breaker as everybody",
		Patches: []Patch{{"engine/judge.go", "if answers[i] == nil && e.jury.considers(o) {", "if answers[i] != nil && e.jury.considers(o) {"}},
		Test:    []string{"-run", "TestFiveBadReports", "./engine"},
	},
	{
		Name: "stale-report-counts", Breaks: "what comes too late changes nothing, not even a breaker",
		Patches: []Patch{{"engine/judge.go", "if answers[i] == nil && e.jury.considers(o) {", "if e.jury.considers(o) {"}},
		Test:    []string{"-run", "TestAStaleReportChangesNothing", "./engine"},
	},
	{
		Name: "claim-does-not-see-an-edit", Breaks: "a job is run with the arguments that were edited, not with those before",
		Patches: []Patch{{"store/sqlite/claim.go", "edits != v.edits || ", "edits < v.edits || "}},
		Test:    []string{"-run", "TestAClaimHandsOutWhatWasEdited", "./store/sqlite"},
	},
	{
		Name: "restore-gives-tokens-again", Breaks: "no token is given twice, also after a restore",
		Patches: []Patch{{"store/sqlite/backup.go", "const leap = 1 << 20", "const leap = 0"}},
		Test:    []string{"-run", "TestNoTokenIsGivenTwice", "./store/sqlite"},
	},
	{
		Name: "only-the-name-is-checked", Breaks: "an address is checked where the connection goes, after the name server has spoken (rebinding)",
		Patches: []Patch{{"safehttp/safehttp.go", "\t\tdialer.Control = func(", "\t\t_ = func("}},
		Test:    []string{"-run", "TestASecondAnswerOfTheNameServer|TestNoNameLeadsInside", "./safehttp"},
	},
	{
		Name: "first-key-locks-nothing", Breaks: "a server that was open asks for keys as soon as there is one",
		Patches: []Patch{{"server/keyring.go", "if len(records) > 0 {", "if len(records) < 0 {"}},
		Test:    []string{"-run", "TestTheFirstKeyLocks", "./server"},
	},
	{
		Name: "proxy-is-local", Breaks: "without keys, what came through a proxy is refused",
		Patches: []Patch{{"server/gate.go", "if proxy := proxied(r); proxy != \"\" {", "if proxy := proxied(r); proxy == \"?\" {"}},
		Test:    []string{"-run", "TestWithoutKeysWhatCameThroughAProxy", "./server"},
	},
	{
		Name: "upload-outlives-its-key", Breaks: "a revoked or expired key ends what is open",
		Patches: []Patch{{"server/keyring_life.go", "\t\t\tl.end(err)\n\t\t\tdelete(k.lives, id)", "\t\t\tdelete(k.lives, id)"}},
		Test:    []string{"-run", "TestTheLifeOfAVisitor|TestABulkStream", "-timeout", "30s", "./server"},
	},
	{
		Name: "anybody-delivers", Breaks: "no caller makes a job that is signed as a notification",
		Patches: []Patch{{"reserve.go", "if strings.EqualFold(queue, reservedQueue) {", "if queue == reservedQueue+\"?\" {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/reserve", "./store/sqlite"},
	},
	{
		Name: "forged-delivery-is-signed", Breaks: "a delivery belongs to its subscription and tells what the feed says",
		Patches: []Patch{{"notify/deliver.go", "if job.Owner != subscription.Owner(l.Subscription) || job.Queue", "if job.Queue"}},
		Test:    []string{"-run", "TestADeliveryThatTheNotifierDidNotMake", "./notify"},
	},
	{
		Name: "request-id-swallows-a-redrive", Breaks: "a redrive is identified by its idempotency key and its order",
		Patches: []Patch{{"server/redrive.go", "mine.Token = digest(name + mine.Digest)", "mine.Token = o.Request"}},
		Test:    []string{"-run", "TestTwoOrdersOfOneRequestId", "./server"},
	},
	{
		Name: "body-names-the-actor", Breaks: "over HTTP the actor of what a worker keeps is its key",
		Patches: []Patch{{"server/worker.go", "if c.confined() {\n\t\treturn breaker.System + \" (key \" + c.Name + \")\"\n\t}\n\treturn c.actor(said)", "return said"}},
		Test:    []string{"-run", "TestTheActorOfWhatAWorkerKeepsIsItsKey", "./server"},
	},
	{
		Name: "worker-lifts-an-operators-hold", Breaks: "holds of operators are placed and lifted by operators",
		Patches: []Patch{{"server/worker.go", "if err := s.mayHold(ctx, c, change, circuits); err != nil {", "if err := s.mayHold(ctx, c, &holdfast.Change{Place: change.Place}, circuits); err != nil {"}},
		Test:    []string{"-run", "TestAWorkerNeitherPlacesNorLiftsAnOperatorsHold", "./server"},
	},
	{
		Name: "bound-key-reads-elsewhere", Breaks: "a key that is bound to queues sees jobs of these alone",
		Patches: []Patch{{"server/bind.go", "err == nil && !c.worksOn(job.Queue, job.Kind) {", "err == nil && !c.worksOn(c.Queues[0], job.Kind) {"}},
		Test:    []string{"-run", "TestABoundKeySettlesRenewsAndReadsNoJobElsewhere", "./server"},
	},
	{
		Name: "worker-chooses-what-is-forgotten", Breaks: "the server's ages decide what a worker forgets",
		Patches: []Patch{{"server/worker.go", "older = max(older, keep)", "_ = keep"}},
		Test:    []string{"-run", "TestAWorkerChoosesNeitherWhatIsPurgedNorWhatIsForgotten", "./server"},
	},
	{
		Name: "wiped-audit-log-passes", Breaks: "a wiped audit log is a finding",
		Patches: []Patch{{"store/internal/inspect/chain.go", "\t\tc.wiped()\n", ""}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/chain", "./store/sqlite"},
	},
	{
		Name: "forgetting-leaves-no-mark", Breaks: "the audit log tells what it has forgotten",
		Patches: []Patch{{"store/sqlite/forget.go", "return mark.Lines, t.tellAll(&line)", "_ = line\n\treturn mark.Lines, nil"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/chain", "./store/sqlite"},
	},
	{
		Name: "bodies-starve-workers", Breaks: "a worker can renew its leases while bodies of jobs take all the memory",
		Patches: []Patch{{"server/memory.go", "if !small || !a.vital {", "if true {"}},
		Test:    []string{"-run", "TestWorkersAreHeardWhenBodiesTakeAllMemory", "./server"},
	},
	{
		Name: "surplus-kept", Breaks: "what a claim has no memory for goes back to its queue at once",
		Patches: []Patch{{"store/postgres/claim.go", "\ts.releaseExcess(ctx, taken.excess)\n", ""}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/claim", "./store/postgres"},
	},
	{
		Name: "claims-without-end", Breaks: "a claim hands out no more than it has memory for",
		Patches: []Patch{{"store/sqlite/claim.go", "v.full = from.bytes > 0 &&", "v.full = false &&"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/claim", "./store/sqlite"},
	},
}
