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
		Patches: []Patch{{"server/keyring.go", "case !k.RevokedAt.IsZero():", "case false:"}, {"key/key.go", "return k.RevokedAt.IsZero() && (", "return ("}},
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
		Patches: []Patch{{"guard/guard.go", "\t\tdialer.Control = func(", "\t\t_ = func("}},
		Test:    []string{"-run", "TestASecondAnswerOfTheNameServer|TestNoNameLeadsInside", "./guard"},
	},
}
