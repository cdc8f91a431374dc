package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// The kinds of the served demo, beside http: what an application in Go would have.
type (
	photoArgs struct {
		Photo   string `json:"photo"`
		Format  string `json:"format"`
		Columns int    `json:"columns"`
	}
	invoiceArgs struct {
		Invoice  int    `json:"invoice"`
		Customer string `json:"customer"`
		Cents    int64  `json:"cents"`
	}
	importArgs struct {
		Feed string `json:"feed"`
	}
)

func (photoArgs) Kind() string   { return "thumbnail" }
func (invoiceArgs) Kind() string { return "invoice" }
func (importArgs) Kind() string  { return "import" }

// What a photo may be in. The second needs something that is missing at first, the third nobody can read.
const (
	plainFormat, newFormat, oddFormat = "jpeg", "heic", "cmyk"
)

// townCodes are the demo's own codes.
var townCodes = []failure.Code{
	{Name: "PHOTO_UNREADABLE", Category: "input", Blame: failure.User, HTTPStatus: 422, Message: "The photo is in colours that cannot be shown on a screen.", Remedy: "Nothing to repair: ask for the photo in RGB."},
	{Name: "CODEC_MISSING", Category: "system", Blame: failure.Us, HTTPStatus: 500, Message: "The photo is in a format that this worker cannot open.", Remedy: "Install the codec on the workers, then redrive."},
	{Name: "INK_MISSING", Category: "dependency", Blame: failure.Dependency, HTTPStatus: 503, Message: "The ink for this card is not in stock.", Remedy: "Wait for the ink, then retry what failed of the campaign."},
}

// hireCrew makes the workers of the town: two engines, as if they were two processes.
func (t *town) hireCrew() (crew []*engine.Engine, err error) {
	for _, one := range []struct {
		name   string
		queues []string
	}{{"crew-harbour", []string{"invoices", "reports", "imports"}}, {"crew-mill", []string{"images", "campaigns", "invoices"}}} {
		cfg := t.site.rules()
		cfg.Name, cfg.Queues, cfg.Slots, cfg.Timeout, cfg.Log = one.name, one.queues, 4, 5*time.Minute, t.site.log
		worker, err := engine.New(t.site.store, cfg)
		if err != nil {
			return nil, err
		}
		gateway := &demoGatewayClient{url: t.gateway.url, http: &http.Client{}}
		err = errors.Join(
			engine.Handle(worker, t.thumbnail, engine.Kind{Timeout: 20 * time.Second}),
			engine.Handle(worker, t.card, engine.Kind{Timeout: 20 * time.Second}),
			engine.Handle(worker, longReport, engine.Kind{}),
			engine.Handle(worker, func(ctx context.Context, job *engine.Job[invoiceArgs]) error {
				_, err := gateway.post(ctx, "/tides")
				return err
			}, engine.Kind{Timeout: 10 * time.Second, Dependency: "billing"}),
			engine.Handle(worker, func(ctx context.Context, _ *engine.Job[importArgs]) error { return pass(ctx, 2*time.Second) }, engine.Kind{}),
		)
		if err != nil {
			return nil, err
		}
		crew = append(crew, worker)
	}
	return crew, nil
}

// pass lets time pass, as work would.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// thumbnail makes a photo small. It has a bug, which shows when no number of columns was given.
func (t *town) thumbnail(ctx context.Context, job *engine.Job[photoArgs]) error {
	if err := pass(ctx, 50*time.Millisecond+rand.N(400*time.Millisecond)); err != nil {
		return err
	}
	switch {
	case job.Args.Format == oddFormat:
		return failure.WithCode(fmt.Errorf("photo %q is in %s, expected rgb", job.Args.Photo, job.Args.Format), "PHOTO_UNREADABLE")
	case job.Args.Format == newFormat && !t.codec.Load():
		return failure.WithCode(fmt.Errorf("no codec opens %q: %s is not installed here", job.Args.Photo, job.Args.Format), "CODEC_MISSING")
	}
	job.Result(map[string]int{"columns": job.Args.Columns, "rows": 480 / job.Args.Columns * 640})
	return nil
}

// card prints one card of a campaign. Golden ink is there only for those who ask twice: when a person retries them.
func (t *town) card(ctx context.Context, job *engine.Job[cardArgs]) error {
	if err := pass(ctx, 100*time.Millisecond+rand.N(300*time.Millisecond)); err != nil {
		return err
	}
	if job.Args.Ink == missingInk && job.Generation == 1 {
		return failure.WithCode(fmt.Errorf("card %d cannot be printed: no %s ink", job.Args.Number, job.Args.Ink), "INK_MISSING")
	}
	return nil
}

// longReport takes a second a page, and tells how far it is.
func longReport(ctx context.Context, job *engine.Job[reportArgs]) error {
	var page int
	job.Resume(&page)
	for ; page < job.Args.Pages; page++ {
		if err := pass(ctx, time.Second); err != nil {
			return err
		}
		if page%3 != 0 {
			continue
		}
		err := errors.Join(job.Progress(ctx, float64(page)*100/float64(job.Args.Pages), fmt.Sprintf("page %d of %d", page, job.Args.Pages)), job.Checkpoint(ctx, page))
		if err != nil {
			return err
		}
	}
	job.Result(map[string]int{"pages": page})
	return nil
}
