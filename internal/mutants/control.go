package main

// controlMutants lists typical defects of breakers, limits, budgets and redrives.
var controlMutants = []Mutant{
	{
		Name: "retries-not-rationed", Breaks: "an owner's budget of retries is never exceeded",
		Patches: []Patch{{"engine/owner_budget.go", "if _, why := a.exhausted(limit, now); refuseIfUsedUp && why != \"\" {", "if _, why := a.exhausted(limit, now); refuseIfUsedUp && why == \"never\" {"}},
		Test:    []string{"-run", "TestAnOwnersBudgetIsNeverExceeded", "./engine"},
	},
	{
		Name: "defaults-beat-the-kind", Breaks: "a kind's policy in Go takes precedence over the defaults of a policy file",
		Patches: []Patch{{"failure/policy/layer.go",
			"\tif s != nil && !delivers(kind) {\n\t\tall = append(all, level{levelDefaults, \"codes\", &s.base})\n\t}\n\tall = append(all, level{levelKind, levelKind + \".Codes\", &ofKind})\n",
			"\tall = append(all, level{levelKind, levelKind + \".Codes\", &ofKind})\n\tif s != nil && !delivers(kind) {\n\t\tall = append(all, level{levelDefaults, \"codes\", &s.base})\n\t}\n"}},
		Test: []string{"-run", "TestEachLevelAppliesWhere", "./failure/policy"},
	},
	{
		Name: "defaults-reach-deliveries", Breaks: "a policy affects deliveries only by entries that name them",
		Patches: []Patch{{"failure/policy/layer.go", "if s != nil && !delivers(kind) {", "if s != nil {"}},
		Test:    []string{"-run", "TestOnlyEntriesThatNameDeliveries", "./failure/policy"},
	},
	{
		Name: "half-open-without-permits", Breaks: "a half-open breaker admits only its probes (Hystrix#1647)",
		Patches: []Patch{{"failure/breaker/flow.go", "return Flow{AtMost: c.Probes}", "return Flow{Free: true}"}},
		Test:    []string{"-run", "TestADependencyThatIsDownForTenMinutes", "./engine"},
	},
	{
		Name: "probe-not-leased", Breaks: "a process that dies while it probes is replaced (resilience4j#903)",
		Patches: []Patch{{"failure/breaker/circuit.go", "return s.Probing != \"\" && now.Before(s.ProbingUntil)", "return s.Probing != \"\""}},
		Test:    []string{"./failure/breaker"},
	},
	{
		Name: "no-ramp", Breaks: "after a breaker has closed, its jobs return gradually",
		Patches: []Patch{{"failure/breaker/flow.go", "return Flow{PerSecond: rate, Burst: max(1, rate/10)}", "return Flow{Free: rate > 0}"}},
		Test:    []string{"-run", "TestADependencyThatIsDownForTenMinutes", "./engine"},
	},
	{
		Name: "everything-moves-the-breaker", Breaks: "failures caused by users do not count for a breaker",
		Patches: []Patch{{"failure/call.go", "case ran && d.code.Blame == BlameDependency:", "case ran:"}},
		Test:    []string{"-run", "TestOnlyAttemptsThatShowSomethingAboutTheDependency", "./failure"},
	},
	{
		Name: "probe-charged", Breaks: "a failed probe that is blamed on the dependency costs the job nothing",
		Patches: []Patch{{"failure/call.go", "To: holdfast.Queued, Delay: delay, Charge: store.ChargeRelease, StartWithin: r.retryWithinAgain(job), Failure: record,", "To: holdfast.Queued, Delay: delay, Charge: store.ChargeFailure, Limit: t.limit, StartWithin: r.retryWithinAgain(job), Failure: record,"}},
		Test:    []string{"-run", "TestAFailedProbeSpendsNothing", "./engine"},
	},
	{
		Name: "engine-claims-all-kinds", Breaks: "a worker claims only kinds it handles",
		Patches: []Patch{{"engine/claim.go", "Kinds: size.kinds, ", ""}},
		Test:    []string{"-run", "TestAnEngineClaimsOnlyKindsItHandles", "./engine"},
	},
	{
		Name: "owner-slots-ignored", Breaks: "slow jobs of one owner do not delay another",
		Patches: []Patch{{"engine/claim.go", "OwnerSlots: c.cfg.OwnerSlots, ", ""}},
		Test:    []string{"-run", "TestSlowJobsOfOneOwner", "./engine"},
	},
	{
		Name: "tenant-names-the-breaker", Breaks: "the dependency of a request is the host that it calls",
		Patches: []Patch{{"kind/httpjob/call.go", "return failure.On(err, c.cfg.Dependencies.of(called))", "_ = called\n\t\treturn err"}},
		Test:    []string{"-run", "TestOnlyTheHostThatIsCalledIsBlamed", "./kind/httpjob"},
	},
	{
		Name: "redirect-blames-the-first-host", Breaks: "a failure after a redirect counts for the host that failed",
		Patches: []Patch{{"kind/httpjob/call.go", "return failure.On(err, c.cfg.Dependencies.of(called))", "_ = called\n\t\treturn failure.On(err, host)"}},
		Test:    []string{"-run", "TestAHostIsNotBlamedForTheTargetOfItsRedirect", "./kind/httpjob"},
	},
	{
		Name: "probes-without-turns", Breaks: "jobs take turns to probe",
		Patches: []Patch{{"engine/probe_turn.go", "place := slices.Index(p.probed, job)", "place := -1"}},
		Test:    []string{"-run", "TestJobsThatAlwaysFailDoNotKeep", "./engine"},
	},
	{
		Name: "no-budget", Breaks: "an unavailable dependency gets few retries",
		Patches: []Patch{{"engine/retry_budget.go", "if cfg.NoBudget || !recentFailure || probing {", "if cfg.NoBudget || !recentFailure || probing || true {"}},
		Test:    []string{"-run", "TestABudgetAloneKeepsRetries", "./engine"},
	},
	{
		Name: "limit-by-counter", Breaks: "a limit is computed from live leases, so that no crash can leave it wrong (solid_queue: limit 1 ran 11 times)",
		Patches: []Patch{{"store/internal/sqltext/claim.sqlite.sql", "SELECT jobs, members FROM holdfast_batch\n", "SELECT jobs, members FROM holdfast_batch WHERE lost IS NULL AND expires_at > (SELECT max(claimed_at) FROM holdfast_batch)\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/limit", "./store/sqlite"},
	},
	{
		Name: "redrive-without-compare-and-set", Breaks: "a redrive takes each dead letter once",
		Patches: []Patch{{"store/sqlite/redrive.go", "before || err != nil {", "false && before || err != nil {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/redrive", "./store/sqlite"},
	},
	{
		Name: "limit-without-lock", Breaks: "concurrent claims do not exceed a limit",
		Patches: []Patch{{"store/internal/sqltext/claim.postgres.sql", " ORDER BY h.scope, h.name, h.source FOR UPDATE\n", " ORDER BY h.scope, h.name, h.source\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/limit", "./store/postgres"},
	},
	{
		Name: "record-without-compare-and-set", Breaks: "a state change is announced once, by the process that made it",
		Patches: []Patch{{"store/internal/sqltext/operate.postgres.sql", " WHERE namespace = $1::text AND name = $2::text AND version = $3::integer\n\n-- name: delete_record", " WHERE namespace = $1::text AND name = $2::text AND $3::integer > 0\n\n-- name: delete_record"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/record", "./store/postgres"},
	},
	{
		Name: "claim-ignores-kinds", Breaks: "a worker claims only kinds it handles",
		Patches: []Patch{{"store/internal/lane/scope.go", "return s.kinds[l.Kind]", "return true"}, {"store/internal/lane/scope.go", "return len(s.Kinds) == 0 || slices.Contains(s.Kinds, l.Kind)", "return true"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/scope", "./store/sqlite"},
	},
	{
		Name: "claim-ignores-kinds-in-its-statement", Breaks: "the same, for the single-statement claim on PostgreSQL",
		Patches: []Patch{{"store/internal/sqltext/claim.postgres.sql", "FROM unnest($5::text[]) AS n (queue) CROSS JOIN unnest($12::text[]) AS w (kind)\n     CROSS JOIN LATERAL (SELECT * FROM holdfast_lane a WHERE a.queue = n.queue AND a.kind = w.kind",
			"FROM unnest($5::text[]) AS n (queue) CROSS JOIN unnest($12::text[]) AS w (kind)\n     CROSS JOIN LATERAL (SELECT * FROM holdfast_lane a WHERE a.queue = n.queue AND w.kind <> ''"}},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/scope", "./store/postgres"},
	},
	{
		Name: "claim-ignores-slots-of-owners", Breaks: "a claim takes no more jobs of an owner than OwnerSlots allows",
		Patches: []Patch{{"store/internal/lane/lane.go", "v.busy[l.Owner] += jobs", "v.busy[l.Owner] += 0 * jobs"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/scope", "./store/sqlite"},
	},
	{
		Name: "claim-joins-all-that-is-ready", Breaks: "other jobs do not slow down a claim, even after the database collected statistics",
		Patches: []Patch{{"store/internal/sqltext/claim.postgres.sql", "AND (SELECT true FROM holdfast_ready r WHERE r.lane = -id ORDER BY r.priority, r.job LIMIT 1)", "AND -id IN (SELECT DISTINCT r.lane FROM holdfast_ready r)"}},
		Test:    []string{"-run", "TestOtherJobsCostNothing", "./store/postgres"},
	},
	{
		Name: "expiry-tries-every-lane", Breaks: "lanes of other jobs do not slow down a duty",
		Patches: []Patch{{"store/internal/sqltext/maintain.sqlite.sql", "ON r.lane = j.lane AND", "ON abs(r.lane) = j.lane AND"}},
		Test:    []string{"-run", "TestEveryStatementFindsItsRowsByKeyInALargeStore", "./store/sqlite"},
	},
	{
		Name: "claim-walks-past-every-lane", Breaks: "lanes of other jobs do not slow down a claim",
		Patches: []Patch{{"store/sqlite/claim_view.go", "const probeFactor = 4\n", "const probeFactor = 4_000_000\n"}},
		Test:    []string{"-run", "TestOtherJobsCostNothing", "./store/sqlite"},
	},
	{
		Name: "no-turns", Breaks: "one owner with many jobs does not delay others",
		Patches: []Patch{{"store/internal/lane/turns.go", "o.had += 1 / o.weight", "o.had += 0 / o.weight"}},
		Test:    []string{"./store/internal/lane"},
	},
}
