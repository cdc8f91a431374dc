package console

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/ops"
)

// digest returns a text for every topic that changes when the topic changes. It uses cheap queries only.
func digest(ctx context.Context, desk ops.Desk) (map[string]string, error) {
	depths, err := desk.Depths(ctx)
	if err != nil {
		return nil, err
	}
	trends, err := desk.Trends(ctx, 2*time.Minute, time.Minute)
	if err != nil {
		return nil, err
	}
	breakers, err := desk.Breakers(ctx)
	if err != nil {
		return nil, err
	}
	latest, err := desk.Latest(ctx, 1)
	if err != nil {
		return nil, err
	}
	workers, err := desk.Workers(ctx)
	if err != nil {
		return nil, err
	}
	redrives, err := readableRedrives(desk.Redrives(ctx))
	if err != nil {
		return nil, err
	}
	var failed, ended int
	for _, one := range trends {
		failed += one.Failed + one.Retried
		ended += one.Complete + one.Cancelled
	}
	var breakerText, redriveText, workerText string
	for _, one := range breakers {
		breakerText += fmt.Sprint(one.Dependency, one.State, one.Calls, one.Failures, one.Behind, one.NextProbe)
	}
	for _, one := range redrives {
		redriveText += fmt.Sprint(one.ID, one.State, one.Tally)
	}
	for _, one := range workers {
		workerText += one.Worker
	}
	head := fmt.Sprint(latest.Head)
	return map[string]string{
		"jobs": fmt.Sprint(depths, ended, failed, head), "failures": fmt.Sprint(failed, head), "breakers": breakerText, "redrives": redriveText + head,
		"holds": fmt.Sprint(head, len(breakers)), "groups": fmt.Sprint(ended, failed, head), "workers": workerText, "feed": head,
	}, nil
}
