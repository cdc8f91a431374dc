package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

type Sum struct {
	Numbers []int `json:"numbers"`
}

func (Sum) Kind() string { return "sum" }

type SumResult struct {
	Sum int `json:"sum"`
}

// Wait returns the result of a job when it has ended, or a *JobError that says why there is none.
func ExampleWait() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	jobs, remove := open(ctx)
	defer remove()
	worker, err := engine.New(jobs, engine.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	engine.Handle(worker, func(_ context.Context, job *engine.Job[Sum]) error {
		if len(job.Args.Numbers) == 0 {
			return failure.WithCode(errors.New("no numbers"), "BAD_REQUEST") // a code that is not retried
		}
		result := SumResult{}
		for _, n := range job.Args.Numbers {
			result.Sum += n
		}
		job.Result(result)
		return nil
	})
	go func() { _ = worker.Run(ctx) }()
	defer func() { _ = worker.Stop(context.Background()) }()

	for _, args := range []Sum{{Numbers: []int{1, 2, 3}}, {}} {
		receipt, err := holdfast.Enqueue(ctx, jobs, args)
		if err != nil {
			panic(err)
		}
		result, err := holdfast.Wait[SumResult](ctx, jobs, receipt.ID)
		if ended := (*holdfast.JobError)(nil); errors.As(err, &ended) {
			fmt.Println(ended.Job.State, ended.Code)
			continue
		}
		fmt.Println(result.Sum, err)
	}
	// Output:
	// 6 <nil>
	// failed BAD_REQUEST
}
