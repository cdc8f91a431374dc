package main

// feedMutants lists typical defects of groups, feeds, schedules, stories and retention.
var feedMutants = []Mutant{
	{
		Name: "edit-without-former-values", Breaks: "edits and redrives keep the values that they replace",
		Patches: []Patch{{"store/internal/rule/edit.go", "\t\twas.add(\"args\", args)\n\t}\n\tif e.Queue", "\t}\n\tif e.Queue"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/edit", "./store/sqlite"},
	},
	{
		Name: "former-values-for-viewers", Breaks: "a secret that an edit removed is read only by keys that can restore it",
		Patches: []Patch{{"server/job.go", "if !c.Scope.Allows(apikey.Operator) {", "if !c.Scope.Allows(apikey.Viewer) {"}},
		Test:    []string{"-run", "TestOnlyKeysThatCanEdit", "./server"},
	},
	{
		Name: "outcome-by-counter", Breaks: "a group's outcome is a function of its members; a counter would keep failures that were fixed since (sidekiq#6852, good_job#1450)",
		Patches: []Patch{{"store/internal/sqltext/group.sqlite.sql",
			"SELECT count(*), coalesce(sum(f.state = 'complete'), 0), coalesce(sum(f.state = 'failed'), 0), coalesce(sum(f.state = 'cancelled' AND NOT f.benign), 0),\n       coalesce(sum(f.state = 'cancelled' AND f.benign), 0)\n  FROM holdfast_job j CROSS JOIN holdfast_finished f",
			"SELECT count(*), coalesce(sum(f.state = 'complete' AND NOT EXISTS (SELECT 1 FROM holdfast_attempt a WHERE a.job = j.id AND a.to_state = 'failed')), 0), coalesce(sum(EXISTS (SELECT 1 FROM holdfast_attempt a WHERE a.job = j.id AND a.to_state = 'failed')), 0), coalesce(sum(f.state = 'cancelled' AND NOT f.benign), 0),\n       coalesce(sum(f.state = 'cancelled' AND f.benign), 0)\n  FROM holdfast_job j CROSS JOIN holdfast_finished f"}},
		Test: []string{"-run", "TestTheStoreKeepsTheLaws/generation", "./store/sqlite"},
	},
	{
		Name: "event-outside-the-transaction", Breaks: "an event is written in the transaction of its change, whenever the process dies (river PR#1271)",
		Patches: []Patch{{"store/sqlite/group_commit.go",
			"\tif err := writePages(last, pages); err != nil {\n\t\treturn err\n\t}\n\tif _, err := w.session.exec(\"commit\"); err != nil {\n\t\treturn err\n\t}\n",
			"\tif _, err := w.session.exec(\"commit\"); err != nil {\n\t\treturn err\n\t}\n\tif _, err := w.session.exec(\"begin\"); err != nil {\n\t\treturn err\n\t}\n\tif err := writePages(last, pages); err != nil {\n\t\treturn err\n\t}\n\tif _, err := w.session.exec(\"commit\"); err != nil {\n\t\treturn err\n\t}\n"}},
		Test: []string{"-run", "TestAProcessMayExitBetweenAnyTwoStatementsOnSQLite", "./cmd/internal/chaos"},
	},
	{
		Name: "trend-outside-the-transaction", Breaks: "an outcome is counted in the transaction in which it is settled, whenever the process dies",
		Patches: []Patch{{"store/sqlite/group_commit.go",
			"\tif err := writeTrends(last, trends); err != nil {\n\t\treturn err\n\t}\n",
			"\tif _, err := w.session.exec(\"commit\"); err != nil {\n\t\treturn err\n\t}\n\tif _, err := w.session.exec(\"begin\"); err != nil {\n\t\treturn err\n\t}\n\tif err := writeTrends(last, trends); err != nil {\n\t\treturn err\n\t}\n"}},
		Test: []string{"-run", "TestAProcessMayExitBetweenAnyTwoStatementsOnSQLite", "./cmd/internal/chaos"},
	},
	{
		Name: "purge-ignores-forever", Breaks: "-1 keeps for ever (river PR#1389 deleted everything)",
		Patches: []Patch{{"store/retention.go", "return r.Name, r.For >= 0 && !t", "return r.Name, !t"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/purge", "./store/sqlite"},
	},
	{
		Name: "slot-without-key", Breaks: "each slot makes one job, even if its schedule is deleted and created again (faktory#447)",
		Patches: []Patch{{"schedule/schedule.go", "\td.IdempotencyKey = \"schedule/\" + s.Name + \"/\" + at\n", ""}},
		Test:    []string{"-run", "TestAScheduleThatIsForgotten", "./engine"},
	},
	{
		Name: "group-settles-while-a-member-lives", Breaks: "a group with a member that has not ended has no outcome",
		Patches: []Patch{{"store/internal/sqltext/group.sqlite.sql", " WHERE j.group_id = $1 AND j.id <= $2 AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id)\n ORDER BY j.id DESC LIMIT 1", " WHERE j.group_id = $1 AND j.id <= $2 AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id) AND EXISTS (SELECT 1 FROM holdfast_leased l WHERE l.job = j.id)\n ORDER BY j.id DESC LIMIT 1"}},
		Test:    []string{"-run", "TestTheStoreKeepsTheLaws/group", "./store/sqlite"},
	},
	{
		Name: "chain-without-the-line-before", Breaks: "the removal of a line from a story is detected",
		Patches: []Patch{{"store/internal/sqltext/chain.go", "\tpart(before)\n", "\tpart(before[:0])\n"}},
		Test:    []string{"./store/internal/inspect"},
	},
}
