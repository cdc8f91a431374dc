package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/detect"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// QueueFind is where searches for a mark wait for workers. It is separate, so that a search never waits behind the copies of a large campaign.
const QueueFind = "find"

// A Find is the job that looks for the mark in a clip or a picture. It is never retried: the specification leaves it out, because its result page says what failed.
type Find struct {
	Campaign string `json:"campaign"` // empty: the newest campaigns of the owner
	File     string `json:"file"`     // its name in the folder of clips
	Name     string `json:"name"`     // that of the file that was uploaded
}

// Kind returns the kind of the job.
func (Find) Kind() string { return "watermark.find" }

// A Found is the result of a Find.
type Found struct {
	Campaign     string        `json:"campaign"` // of the best match
	Named        []FoundToken  `json:"named"`
	Best         float64       `json:"best"` // the highest correlation, in standard deviations
	Pilot        float64       `json:"pilot"`
	ScaleX       float64       `json:"scale_x"`
	ScaleY       float64       `json:"scale_y"`
	Orientation  string        `json:"orientation"`
	Pictures     int           `json:"pictures"`
	Campaigns    int           `json:"campaigns"` // that were compared
	Candidates   int           `json:"candidates"`
	Correlations int           `json:"correlations"`
	Took         time.Duration `json:"took"`
}

// A FoundToken is a recipient that was identified.
type FoundToken struct {
	Token  string  `json:"token"`
	Name   string  `json:"name"`
	Email  string  `json:"email"`
	Z      float64 `json:"z"`
	Chance float64 `json:"chance"` // that an innocent recipient is named
}

const (
	clipFolder     = "clips"
	evidenceFolder = "evidence"
	mostCampaigns  = 50 // that one search compares
)

// StartFind starts the search for the mark in a file, which is moved. campaign may be empty: then the owner's newest campaigns are compared.
func (s *Service) StartFind(ctx context.Context, owner, campaign, name, path string) (holdfast.ID, error) {
	if campaign != "" {
		if _, err := s.Campaign(ctx, owner, campaign); err != nil {
			return holdfast.ID{}, err
		}
	}
	file := holdfast.NewID().String()
	if err := os.Rename(path, filepath.Join(s.cfg.Folder, clipFolder, file)); err != nil {
		return holdfast.ID{}, err
	}
	receipt, err := holdfast.Enqueue(ctx, s.cfg.Jobs, Find{campaign, file, name}, func(d *holdfast.Draft) { d.Queue, d.Owner, d.MaxAttempts = QueueFind, owner, 1 })
	if err != nil {
		err = errors.Join(err, os.Remove(filepath.Join(s.cfg.Folder, clipFolder, file)))
	}
	return receipt.ID, err
}

// find is the handler of searches. The clip is deleted at the end, unless the worker is stopped and another one continues.
func (s *Service) find(ctx context.Context, job *engine.Job[Find]) error {
	path := filepath.Join(s.cfg.Folder, clipFolder, job.Args.File)
	err := s.findIn(ctx, job, path)
	if ctx.Err() == nil {
		if left := os.Remove(path); left != nil && !errors.Is(left, os.ErrNotExist) {
			s.cfg.Log.Warn("a clip cannot be deleted", "event", "clip_left", "job_id", job.ID.String(), "error", left.Error())
		}
	}
	return err
}

func (s *Service) findIn(ctx context.Context, job *engine.Job[Find], path string) error {
	begin := time.Now()
	campaigns, err := s.comparable(ctx, job.Owner, job.Args.Campaign)
	if err != nil {
		return asFailure(err)
	}
	if len(campaigns) == 0 {
		return code.New(code.DetectNoCampaign, nil)
	}
	sum, err := s.cfg.Tools.ReadMarks(ctx, path)
	if err != nil {
		return failure.NeverRetry(err)
	}
	result := Found{Campaigns: len(campaigns), Pictures: sum.Pictures()}
	var best *detect.Report
	for n, c := range campaigns {
		report, err := s.compare(ctx, sum, c)
		if err != nil {
			return failure.NeverRetry(code.New(code.DetectFailed, err))
		}
		result.Candidates += report.Candidates
		result.Correlations += report.Correlations
		if len(report.Findings) > 0 && (best == nil || report.Findings[0].Z > best.Findings[0].Z) {
			best, result.Campaign = report, c.ID
		}
		if best != nil && best.Found() {
			break
		}
		_ = job.Progress(ctx, 100*float64(n+1)/float64(len(campaigns)), "")
	}
	if best != nil {
		if err := s.writeResult(ctx, job.ID.String(), best, &result); err != nil {
			return failure.NeverRetry(err)
		}
	}
	result.Took = time.Since(begin)
	job.Result(result)
	return nil
}

// comparable returns the campaigns that a search compares.
func (s *Service) comparable(ctx context.Context, owner, campaign string) (list []Campaign, err error) {
	all := []Campaign{}
	if campaign != "" {
		c, err := s.Campaign(ctx, owner, campaign)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	} else if all, err = s.Campaigns(ctx, owner, mostCampaigns); err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.Invisible && !c.PublishedAt.IsZero() {
			list = append(list, c)
		}
	}
	return list, nil
}

func (s *Service) compare(ctx context.Context, sum *detect.Sum, c Campaign) (*detect.Report, error) {
	asset, err := s.Asset(ctx, c.Owner, c.Asset)
	if err != nil {
		return nil, err
	}
	with := detect.Campaign{Key: s.Key(c.ID), Width: asset.Width &^ 1, Height: asset.Height &^ 1}
	err = s.cfg.DB.Each(ctx, `SELECT id FROM watermark_token WHERE campaign = ?`, []any{c.ID}, func(scan func(...any) error) error {
		id := ""
		err := scan(&id)
		with.Tokens = append(with.Tokens, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sum.Search(ctx, with)
}

// writeResult writes the result, and the picture of the evidence.
func (s *Service) writeResult(ctx context.Context, job string, r *detect.Report, result *Found) error {
	result.Best, result.Pilot, result.ScaleX, result.ScaleY, result.Orientation = r.Findings[0].Z, r.Pilot, r.ScaleX, r.ScaleY, r.Orientation.String()
	for _, f := range r.Named() {
		t, err := s.tokenBy(ctx, `id = ?`, f.Token)
		if err != nil {
			return asFailure(err)
		}
		result.Named = append(result.Named, FoundToken{f.Token, t.Name, t.Email, f.Z, f.Chance})
	}
	file, err := os.Create(s.evidencePath(job))
	if err != nil {
		return code.New(code.Name(err), err)
	}
	return errors.Join(png.Encode(file, r.Evidence()), file.Close())
}

func (s *Service) evidencePath(job string) string {
	return filepath.Join(s.cfg.Folder, evidenceFolder, job+".png")
}

// A Search is a search for a mark, as its page shows it.
type Search struct {
	ID        string
	Name      string
	State     holdfast.State
	Percent   float64
	CreatedAt time.Time
	Code      string // of its failure
	Error     string
	Found     *Found // nil until it is complete
	Evidence  string // path of the picture; empty: none
}

// Search returns a search of an owner. The error is ErrNotFound if there is none.
func (s *Service) Search(ctx context.Context, owner, id string) (Search, error) {
	parsed, err := holdfast.ParseID(id)
	if err != nil {
		return Search{}, ErrNotFound
	}
	job, err := s.cfg.Jobs.Job(ctx, parsed)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && (job.Owner != owner || job.Kind != Find{}.Kind()) {
		return Search{}, ErrNotFound
	}
	if err != nil {
		return Search{}, err
	}
	return s.searchOf(job)
}

func (s *Service) searchOf(job holdfast.Job) (Search, error) {
	id := job.ID.String()
	r := Search{ID: id, State: job.State, CreatedAt: job.CreatedAt}
	var args Find
	if err := json.Unmarshal(job.Args, &args); err != nil {
		return Search{}, fmt.Errorf("the search cannot be read: %w", err)
	}
	r.Name = args.Name
	if job.Progress != nil {
		r.Percent = job.Progress.Percent
	}
	if job.LastFailure != nil {
		r.Code, r.Error = code.Of(job.LastFailure.Code).Name, detailOf(job.LastFailure)
	}
	if job.State == holdfast.Complete {
		r.Found = &Found{}
		if err := json.Unmarshal(job.Result, r.Found); err != nil {
			return Search{}, fmt.Errorf("the result cannot be read: %w", err)
		}
		if path := s.evidencePath(id); exists(path) {
			r.Evidence = path
		}
	}
	return r, nil
}

// Searches returns the newest searches of an owner, at most limit.
func (s *Service) Searches(ctx context.Context, owner string, limit int) (list []Search, err error) {
	jobs, _, err := s.cfg.Jobs.Jobs(ctx, store.Filter{Kind: Find{}.Kind(), Owner: owner, Limit: limit})
	for i := range jobs {
		r, err := s.searchOf(jobs[i])
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
