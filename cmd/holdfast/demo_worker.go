package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// The kinds of the demo.
type (
	convertArgs struct {
		Document string `json:"document"`
	}
	reportArgs struct {
		Pages int `json:"pages"`
	}
	mailArgs struct {
		To string `json:"to"`
	}
)

func (convertArgs) Kind() string { return "convert" }
func (reportArgs) Kind() string  { return "report" }
func (mailArgs) Kind() string    { return "mail" }

// demoLease is short, so that the jobs of a killed worker are reclaimed quickly.
const demoLease = 5 * time.Second

// demoWorkerCommand is the hidden command of a worker process of the demo. It is a separate process so that the demo can kill it.
func demoWorkerCommand() *cobra.Command {
	var name, gatewayURL string
	c := &cobra.Command{
		Use: "worker", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			address, _ := c.Flags().GetString("store")
			return runDemoWorker(c.Context(), address, name, gatewayURL)
		},
	}
	c.Flags().StringVar(&name, "name", "worker", "name of the worker")
	c.Flags().StringVar(&gatewayURL, "gateway", "", "URL of the gateway")
	return c
}

func runDemoWorker(ctx context.Context, address, name, gatewayURL string) error {
	jobs, err := store.Open(ctx, address)
	if err != nil {
		return err
	}
	defer jobs.Close()
	worker, err := engine.New(jobs, engine.Config{
		Name: name, Queues: []string{"default", "bulk"}, Slots: 4, Lease: demoLease, Grace: 2 * time.Second,
		Dependencies: map[string]engine.Dependency{
			"gateway": {Breaker: breaker.Config{Disabled: true}, NoBudget: true}, // the first part of the demo is about single jobs
			renderer:  {Breaker: demoBreaker},
		},
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	gateway := &demoGatewayClient{url: gatewayURL, http: &http.Client{}}
	patient := failure.Policy{MaxAttempts: 3, Backoff: failure.Exponential{Base: 2 * time.Second, Factor: 2, Jitter: failure.Jitter{Plus: time.Second}}}
	yes := true // by default a panic is not retried
	retryPanics := failure.Policy{Backoff: failure.Fixed(time.Second), Codes: map[string]failure.Override{"SYSTEM_PANIC": {Retryable: &yes}}}
	err = errors.Join(
		engine.Handle(worker, gateway.convert, engine.Kind{Timeout: 3 * time.Second, Policy: patient, Dependency: "gateway", Classify: gatewayRule}),
		engine.Handle(worker, gateway.render, engine.Kind{Timeout: 3 * time.Second, Policy: patient, Dependency: renderer}),
		engine.Handle(worker, gateway.card, engine.Kind{Timeout: 3 * time.Second}),
		engine.Handle(worker, writeReport, engine.Kind{Timeout: time.Minute}),
		engine.Handle(worker, sendMail, engine.Kind{Policy: retryPanics}),
	)
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

// gatewayRule classifies the gateway's answers with the codes of the converter.
var gatewayRule = failure.Chain(
	failure.ByTimeout("GW_TIMEOUT"),
	failure.ByHTTPStatusTable(map[int]string{4: "GW_4XX", 5: "GW_5XX"}),
)

type demoGatewayClient struct {
	url  string
	http *http.Client
}

func (g *demoGatewayClient) convert(ctx context.Context, job *engine.Job[convertArgs]) error {
	body, err := g.post(ctx, "/convert/"+job.Args.Document)
	if err == nil {
		job.Result(map[string]int{"bytes": len(body)})
	}
	return err
}

// render renders one page.
func (g *demoGatewayClient) render(ctx context.Context, job *engine.Job[renderArgs]) error {
	_, err := g.post(ctx, "/render?font="+job.Args.Font)
	return err
}

// card prints one card of the campaign.
func (g *demoGatewayClient) card(ctx context.Context, job *engine.Job[cardArgs]) error {
	_, err := g.post(ctx, "/print?ink="+job.Args.Ink)
	return err
}

func (g *demoGatewayClient) post(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, nil)
	if err != nil {
		return nil, failure.NeverRetry(err)
	}
	response, err := g.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode != http.StatusOK {
		err = failure.HTTPError(response.StatusCode, response.Header.Get("Retry-After"), nil)
	}
	return body, err
}

// writeReport saves a checkpoint after every page, so that the attempt after a crash continues there.
func writeReport(ctx context.Context, job *engine.Job[reportArgs]) error {
	var page int
	if job.Resume(&page) {
		_ = job.Progress(ctx, float64(page)*100/float64(job.Args.Pages), fmt.Sprintf("continued after page %d", page))
	}
	for page < job.Args.Pages {
		select {
		case <-time.After(700 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		page++
		if err := job.Checkpoint(ctx, page); err != nil {
			return err
		}
	}
	job.Result(map[string]int{"pages": page})
	return nil
}

// sendMail has a bug: its first attempt panics.
func sendMail(_ context.Context, job *engine.Job[mailArgs]) error {
	if job.Failures == 0 {
		var addressBook map[string]*http.Client
		addressBook[job.Args.To].CloseIdleConnections()
	}
	return nil
}
