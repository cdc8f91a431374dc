package main

// control are the defects that breakers, limits, budgets and redrives are known for.
var control = []Mutant{
	{
		Name: "half-open-without-permits", Breaks: "while a circuit is half-open only its probes go (Hystrix#1647)",
		Patches: []Patch{{"failure/breaker/flow.go", "return Flow{AtMost: c.Probes}", "return Flow{Free: true}"}},
		Test:    []string{"-run", "TestADependencyThatIsDownForTenMinutes", "./engine"},
	},
	{
		Name: "probe-not-leased", Breaks: "a process that dies while it probes frees its place (resilience4j#903)",
		Patches: []Patch{{"failure/breaker/circuit.go", "return s.Probing != \"\" && now.Before(s.ProbingUntil)", "return s.Probing != \"\""}},
		Test:    []string{"./failure/breaker"},
	},
	{
		Name: "no-ramp", Breaks: "after a circuit has closed its jobs come back little by little",
		Patches: []Patch{{"failure/breaker/flow.go", "return Flow{PerSecond: rate, Burst: max(1, rate/10)}", "return Flow{Free: rate > 0}"}},
		Test:    []string{"-run", "TestADependencyThatIsDownForTenMinutes", "./engine"},
	},
	{
		Name: "everything-moves-the-breaker", Breaks: "users' mistakes say nothing about a dependency",
		Patches: []Patch{{"failure/call.go", "case ran && d.code.Blame == Dependency:", "case ran:"}},
		Test:    []string{"-run", "TestOnlyWhatSaysSomethingAboutTheDependency", "./failure"},
	},
	{
		Name: "no-budget", Breaks: "retries of a dead dependency stay few",
		Patches: []Patch{{"engine/budget.go", "if how.NoBudget || !troubled {", "if how.NoBudget || !troubled || true {"}},
		Test:    []string{"-run", "TestABudgetAloneKeepsRetries", "./engine"},
	},
	{
		Name: "limit-by-counter", Breaks: "a limit is counted from live leases, so that no crash can leave it wrong (solid_queue: limit 1 ran 11 times)",
		Patches: []Patch{{"store/statement/claim.sqlite.sql", "SELECT jobs, members FROM holdfast_lease\n", "SELECT jobs, members FROM holdfast_lease WHERE lost IS NULL AND expires_at > (SELECT max(claimed_at) FROM holdfast_lease)\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/limit", "./store/sqlite"},
	},
	{
		Name: "redrive-without-compare-and-set", Breaks: "a redrive takes each dead letter once",
		Patches: []Patch{{"store/sqlite/redrive.go", "before || err != nil {", "false && before || err != nil {"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/redrive", "./store/sqlite"},
	},
	{
		Name: "limit-without-lock", Breaks: "processes that claim at once exceed no limit",
		Patches: []Patch{{"store/statement/claim.postgres.sql", " ORDER BY h.scope, h.name, h.source FOR UPDATE\n", " ORDER BY h.scope, h.name, h.source\n"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/limit", "./store/postgres"},
	},
	{
		Name: "record-without-compare-and-set", Breaks: "a transition is announced once, by whoever was first",
		Patches: []Patch{{"store/statement/operate.postgres.sql", " WHERE room = $1::text AND name = $2::text AND version = $3::integer\n\n-- name: record_forget", " WHERE room = $1::text AND name = $2::text AND $3::integer > 0\n\n-- name: record_forget"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/record", "./store/postgres"},
	},
	{
		Name: "no-turns", Breaks: "one noisy owner does not keep others waiting",
		Patches: []Patch{{"store/lane/fair.go", "o.had += 1 / o.weight", "o.had += 0 / o.weight"}},
		Test:    []string{"./store/lane"},
	},
}
