package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// maxUpstream is the number of members that an explanation checks; each needs a query of its own.
const maxUpstream = 50

// maxNamed is the number of members that it names.
const maxNamed = 5

// explainMember says which members a member of a group waits for, and what else keeps it from starting.
func (s *Service) explainMember(ctx context.Context, job holdfast.Job) ([]Reason, error) {
	var live []string
	ended := 0
	for _, id := range job.After[:min(len(job.After), maxUpstream)] {
		other, err := s.store.Job(ctx, id)
		switch {
		case errors.Is(err, holdfast.ErrPurged) || err == nil && other.State.Terminal():
			ended++
		case err != nil:
			return nil, err
		default:
			live = append(live, fmt.Sprintf("%s (%s, %s%s)", id, other.Kind, other.State, wanted(job, id)))
		}
	}
	reasons := []Reason{memberReason(job, live, ended)}
	idle, err := s.pausedDuty(ctx, "group", "members that wait for others do not start, and groups do not settle")
	if err != nil {
		return nil, err
	}
	reasons = append(reasons, idle...)
	workers, err := s.store.Workers(ctx)
	if len(workers) == 0 && err == nil {
		reasons = append(reasons, Reason{Name: "no worker", Text: "no worker is alive, and a worker is needed to start members that waited", Remedy: "start a worker for the queue " + job.Queue})
	}
	return reasons, err
}

// wanted says how a member must end, unless it must complete.
func wanted(job holdfast.Job, upstream holdfast.ID) string {
	for _, c := range job.When {
		if c.Job == upstream && c.On != holdfast.OnComplete {
			return map[holdfast.Outcome]string{holdfast.OnFailed: "; must fail", holdfast.OnCancelled: "; must be cancelled", holdfast.OnEnded: "; with any outcome"}[c.On]
		}
	}
	return ""
}

func memberReason(job holdfast.Job, live []string, ended int) Reason {
	r := Reason{Name: "members"}
	switch unchecked := len(job.After) - len(live) - ended; {
	case len(live) == 0 && unchecked == 0:
		r.Text = fmt.Sprintf("all %d members of its group that it waited for have ended: it starts, or is cancelled because of them, within a moment", len(job.After))
		r.Remedy = "wait a moment and check again"
	case len(live) == 0:
		r.Text = fmt.Sprintf("it waits for members of its group: %d have ended, %d more were not checked", ended, unchecked)
		r.Remedy = fmt.Sprintf("see which: holdfast groups show %s", job.Group)
	default:
		named := strings.Join(live[:min(len(live), maxNamed)], ", ")
		if more := len(live) - maxNamed + unchecked; more > 0 && len(live) >= maxNamed {
			named += fmt.Sprintf(" and up to %d more", more)
		}
		r.Text = fmt.Sprintf("it waits for members of its group that have not ended: %s; %d of %d have", named, ended, len(job.After))
		r.Remedy = fmt.Sprintf("see why they have not ended: holdfast explain %s", strings.Fields(live[0])[0])
	}
	return r
}

// upstreamReason explains a member that never ran because of another.
func upstreamReason(job holdfast.Job) Reason {
	if job.Skipped {
		text := fmt.Sprintf("it was skipped at %s because it was not needed: ", when(job.FinishedAt))
		if job.Upstream.IsZero() {
			return Reason{Name: "skipped", Text: text + "a member of its group, which it waited for, was deleted by retention"}
		}
		return Reason{
			Name:   "skipped",
			Text:   text + fmt.Sprintf("member %s of its group did not end as it waited for; the outcome of the group does not depend on it", job.Upstream),
			Remedy: fmt.Sprintf("no action needed; to see how that member ended: holdfast explain %s", job.Upstream),
		}
	}
	return Reason{
		Name:   "upstream",
		Text:   fmt.Sprintf("it was cancelled at %s because member %s of its group, which it waited for, did not complete", when(job.FinishedAt), job.Upstream),
		Remedy: fmt.Sprintf("find the cause: holdfast explain %s; then retry the failed members and those that waited for them: holdfast groups retry %s", job.Upstream, job.Group),
	}
}

// pausedDuty returns a reason if a duty that the job needs is paused. consequence says what does not happen without it.
func (s *Service) pausedDuty(ctx context.Context, name, consequence string) ([]Reason, error) {
	duties, err := s.Duties(ctx)
	for _, d := range duties {
		if d.Name != name || !d.Paused {
			continue
		}
		text := fmt.Sprintf("duty %s is paused by %s, so %s", name, d.Actor, consequence)
		if d.Reason != "" {
			text += ": " + d.Reason
		}
		return []Reason{{Name: "duty paused", Text: text, Remedy: "resume it: holdfast duties resume " + name, Until: d.Until}}, nil
	}
	return nil, err
}

// explainPurged explains a purged job from its tombstone. Without a tombstone it returns the store's error, purged.
func (s *Service) explainPurged(ctx context.Context, id holdfast.ID, purged error) (Explanation, error) {
	stones, _, err := s.store.Tombstones(ctx, store.TombstoneFilter{Job: id, Limit: 1})
	if err != nil {
		return Explanation{}, err
	}
	if len(stones) == 0 {
		return Explanation{}, purged
	}
	t := stones[0]
	job := holdfast.Job{ID: t.Job, Kind: t.Kind, Queue: t.Queue, Owner: t.Owner, Group: t.Group, State: t.State, FinishedAt: t.FinishedAt}
	how := string(t.State)
	if t.Code != "" {
		how += " with " + t.Code
	}
	text := fmt.Sprintf("it ended at %s, %s, and was purged at %s by rule %s", when(t.FinishedAt), how, when(t.PurgedAt), t.Rule)
	return Explanation{job, []Reason{{Name: "purged", Text: text, Remedy: "enqueue it again if it is still wanted; to keep such jobs longer, change the rules: holdfast retention apply FILE"}}}, nil
}
