package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestSchedulesAreManaged(t *testing.T) {
	address, _, _ := newTestStore(t)
	runSteps(t, address, []step{
		{"schedules", exitOK, "no schedules"},
		{"schedules add report --kind report --actor ada", exitUsage, ""},
		{"schedules add report --cron '0 9 * * MON-FRI' --zone Europe/Berlin --kind report --args '{\"a\": 1}' --actor ada", exitOK, `cron "0 9 * * MON-FRI" in Europe/Berlin`},
		{"schedules add tidy --every 5m --kind tidy --missed skip --actor ada", exitOK, "every 5 minutes"},
		{"schedules", exitOK, "Europe/Berlin"},
		{"schedules next report --count 3", exitOK, " 09:00:00 CE"},
		{"schedules next report --count 0", exitUsage, ""},
		{"schedules pause report --for 48h --actor ada --reason holidays", exitOK, "report: paused"},
		{"schedules", exitOK, "holidays"},
		{"schedules resume report --actor ada", exitOK, "report: resumed"},
		{"schedules resume report --actor ada", exitConflict, ""},
		{"schedules pause tidy --actor ada", exitOK, "paused"},
		{"schedules next tidy", exitOK, "no next runs: paused by ada"},
		{"schedules run report --actor ada --request T-2", exitOK, "requested"},
		{"schedules list --json", exitOK, `"run_now": 1`},
		{"schedules remove report --actor ada", exitOK, "removed"},
		{"schedules run report --actor ada", exitNotFound, ""},
		{"audit --subject schedule/report", exitOK, "T-2"},
	})
}

func TestDutiesAreManaged(t *testing.T) {
	address, _, waiting := newTestStore(t)
	runSteps(t, address, []step{
		{"duties", exitOK, "no worker has reported"},
		{"duties pause claim --actor ada", exitUsage, ""},
		{"duties pause promotion --actor ada", exitNotFound, ""},
		{"duties pause retention --for 24h --actor ada --reason 'an audit'", exitOK, "retention: paused"},
		{"duties", exitOK, "an audit"},
		{"duties list --json", exitOK, `"paused": true`},
		{"duties resume retention --actor ada", exitOK, "retention: resumed"},
		{"duties resume retention --actor ada", exitConflict, ""},
		{"duties run schedule --actor ada", exitOK, "schedule: requested"},
		{"explain " + waiting.String(), exitOK, "no live worker"},
	})
}

func TestRulesOfRetentionAreAppliedAndTombstonesListed(t *testing.T) {
	address, failed, _ := newTestStore(t)
	file := filepath.Join(t.TempDir(), "rules.json")
	ok(t, os.WriteFile(file, []byte(`[{"name": "dead", "state": "failed", "kind": "mail", "for": "0s"}, {"name": "rest", "for": "forever"}]`), 0o600))
	odd := filepath.Join(t.TempDir(), "odd.json")
	ok(t, os.WriteFile(odd, []byte(`[{"name": "dead", "kinds": "mail", "for": "1h"}]`), 0o600))
	runSteps(t, address, []step{
		{"retention", exitOK, "no rules are applied"},
		{"retention apply --actor ada", exitUsage, ""},
		{"retention apply --actor ada " + file + ".gone", exitUsage, ""},
		{"retention apply --actor ada " + odd, exitUsage, ""},
		{"retention apply --actor ada --rule name=x", exitUsage, ""},
		{"retention apply --actor ada --rule name=x,for=soon", exitUsage, ""},
		{"retention apply --actor ada --rule name=x,for=1h --reset", exitUsage, ""},
		{"retention apply --actor ada --reset", exitConflict, ""},
		{"retention apply --actor ada --rule name=mails,kind=mail,state=complete,for=7d --rule name=rest,for=forever", exitOK, "applied: 2 rules"},
		{"retention show", exitOK, "7d"},
		{"retention apply --actor ada " + file, exitOK, "applied: 2 rules"},
		{"retention --json", exitOK, `"for": "forever"`},
		{"retention tombstones", exitOK, "no tombstones match"},
	})
	withStore(t, address, func(ctx context.Context, s store.Store) {
		purged, err := s.Purge(ctx, store.Purge{Rules: []store.RetentionRule{{Name: "dead", State: holdfast.Failed}}, Scan: 10})
		ok(t, err)
		if purged.Jobs != 1 {
			t.Fatalf("purged %+v", purged)
		}
	})
	runSteps(t, address, []step{
		{"retention tombstones --kind mail", exitOK, failed.String()},
		{"retention tombstones --json --job " + failed.String(), exitOK, `"rule": "dead"`},
		{"retention", exitOK, "purged so far"},
		{"explain " + failed.String(), exitOK, "by rule dead"},
		{"story " + failed.String(), exitNotFound, ""},
		{"retention apply --actor ada --reset", exitOK, "reset"},
	})
}
