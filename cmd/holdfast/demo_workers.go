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

// The kinds of the live demo besides http, as an application in Go would have them.
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
	cardArgs struct { // one card of a campaign
		Number int    `json:"number"`
		Ink    string `json:"ink"`
	}
	reportArgs struct {
		Pages int `json:"pages"`
	}
)

func (photoArgs) Kind() string   { return "thumbnail" }
func (invoiceArgs) Kind() string { return "invoice" }
func (importArgs) Kind() string  { return "import" }
func (cardArgs) Kind() string    { return "card" }
func (reportArgs) Kind() string  { return "report" }

// missingInk is an ink that some cards need and that is not in stock at first.
const missingInk = "gold"

// The formats of photos. newFormat needs a codec that is missing at first, oddFormat cannot be read.
const (
	plainFormat, newFormat, oddFormat = "jpeg", "heic", "cmyk"
)

// liveCodes are the failure codes of the live demo.
var liveCodes = []failure.Code{
	{Name: "PHOTO_UNREADABLE", Category: "input", Blame: failure.BlameUser, HTTPStatus: 422, Message: "The photo is in colours that cannot be shown on a screen.", Remedy: "Ask the user for the photo in RGB."},
	{Name: "CODEC_MISSING", Category: "system", Blame: failure.BlameUs, HTTPStatus: 500, Message: "The photo is in a format that this worker cannot open.", Remedy: "Install the codec on the workers, then redrive."},
	{Name: "INK_MISSING", Category: "dependency", Blame: failure.BlameDependency, HTTPStatus: 503, Message: "The ink for this card is not in stock.", Remedy: "Wait for the ink, then retry the failed members of the campaign."},
}

// newWorkers creates two engines, as if they were two processes.
func (d *demo) newWorkers() (workers []*engine.Engine, err error) {
	for _, one := range []struct {
		name   string
		queues []string
	}{{"crew-harbour", []string{"invoices", "reports", "imports"}}, {"crew-mill", []string{"images", "campaigns", "invoices"}}} {
		cfg := d.process.engineConfig()
		cfg.Name, cfg.Queues, cfg.Slots, cfg.Timeout, cfg.Log = one.name, one.queues, 4, 5*time.Minute, d.process.log
		worker, err := engine.New(d.process.store, cfg)
		if err != nil {
			return nil, err
		}
		engine.Handle(worker, d.thumbnail, engine.KindOptions{Timeout: 20 * time.Second})
		engine.Handle(worker, d.card, engine.KindOptions{Timeout: 20 * time.Second})
		engine.Handle(worker, longReport, engine.KindOptions{})
		engine.Handle(worker, func(ctx context.Context, job *engine.Job[invoiceArgs]) error {
			return d.charge(ctx)
		}, engine.KindOptions{Timeout: 10 * time.Second, Dependency: "billing"})
		engine.Handle(worker, func(ctx context.Context, _ *engine.Job[importArgs]) error { return sleep(ctx, 2*time.Second) }, engine.KindOptions{})
		workers = append(workers, worker)
	}
	return workers, nil
}

// charge calls the billing service, which is down.
func (d *demo) charge(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.gateway.url+"/outage", nil)
	if err != nil {
		return failure.NeverRetry(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return failure.NewHTTPError(response.StatusCode, response.Header, nil)
	}
	return nil
}

// sleep waits for a duration, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// thumbnail reduces a photo. It has a bug: it panics if the number of columns is 0.
func (d *demo) thumbnail(ctx context.Context, job *engine.Job[photoArgs]) error {
	if err := sleep(ctx, 50*time.Millisecond+rand.N(400*time.Millisecond)); err != nil {
		return err
	}
	switch {
	case job.Args.Format == oddFormat:
		return failure.WithCode(fmt.Errorf("photo %q is in %s, expected rgb", job.Args.Photo, job.Args.Format), "PHOTO_UNREADABLE")
	case job.Args.Format == newFormat && !d.codec.Load():
		return failure.WithCode(fmt.Errorf("no codec opens %q: %s is not installed here", job.Args.Photo, job.Args.Format), "CODEC_MISSING")
	}
	job.Result(map[string]int{"columns": job.Args.Columns, "rows": 480 / job.Args.Columns * 640})
	return nil
}

// card prints one card of a campaign. The missing ink is available only after a manual retry.
func (d *demo) card(ctx context.Context, job *engine.Job[cardArgs]) error {
	if err := sleep(ctx, 100*time.Millisecond+rand.N(300*time.Millisecond)); err != nil {
		return err
	}
	if job.Args.Ink == missingInk && job.Generation == 1 {
		return failure.WithCode(fmt.Errorf("card %d cannot be printed: no %s ink", job.Args.Number, job.Args.Ink), "INK_MISSING")
	}
	return nil
}

// longReport takes a second for each page and reports its progress.
func longReport(ctx context.Context, job *engine.Job[reportArgs]) error {
	var page int
	if _, err := job.Resume(&page); err != nil {
		return err
	}
	for ; page < job.Args.Pages; page++ {
		if err := sleep(ctx, time.Second); err != nil {
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
