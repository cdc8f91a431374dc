package console

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/ops"
)

// digest returns a text for every topic that changes when the topic changes. It uses cheap queries only.
func digest(ctx context.Context, operator ops.Operator) (map[string]string, error) {
	depths, err := operator.Depths(ctx)
	if err != nil {
		return nil, err
	}
	trends, err := operator.Trends(ctx, 2*time.Minute, time.Minute)
	if err != nil {
		return nil, err
	}
	breakers, err := operator.Breakers(ctx)
	if err != nil {
		return nil, err
	}
	latest, err := operator.LatestEvents(ctx, 1)
	if err != nil {
		return nil, err
	}
	workers, err := operator.Workers(ctx)
	if err != nil {
		return nil, err
	}
	redrives, err := readableRedrives(operator.Redrives(ctx))
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
		redriveText += fmt.Sprint(one.ID, one.State, one.Counts)
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
