package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// mostUpstream is after how many members an explanation stops asking: each costs a question of its own.
const mostUpstream = 50

// mostNamed is how many of them it names.
const mostNamed = 5

// explainMember tells for whom a member of a group waits, and what else stands in its way.
func (s *Service) explainMember(ctx context.Context, job holdfast.Job) ([]Reason, error) {
	var live []string
	ended := 0
	for _, id := range job.After[:min(len(job.After), mostUpstream)] {
		other, err := s.store.Job(ctx, id)
		switch {
		case errors.Is(err, holdfast.ErrPurged) || err == nil && other.State.Terminal():
			ended++
		case err != nil:
			return nil, err
		default:
			live = append(live, fmt.Sprintf("%s (%s, %s)", id, other.Kind, other.State))
		}
	}
	reasons := []Reason{forMembers(job, live, ended)}
	idle, err := s.idle(ctx, "group", "members that wait for others are not let go, and groups are not settled")
	if err != nil {
		return nil, err
	}
	reasons = append(reasons, idle...)
	workers, err := s.store.Workers(ctx)
	if len(workers) == 0 && err == nil {
		reasons = append(reasons, Reason{Name: "no worker", Text: "no worker is alive, and it takes one to let members go that waited", Remedy: "start a worker for the queue " + job.Queue})
	}
	return reasons, err
}

func forMembers(job holdfast.Job, live []string, ended int) Reason {
	r := Reason{Name: "members"}
	switch unlooked := len(job.After) - len(live) - ended; {
	case len(live) == 0 && unlooked == 0:
		r.Text = fmt.Sprintf("all %d members of its group for which it waited have ended: it is let go, or cancelled because of them, within a moment", len(job.After))
		r.Remedy = "wait a moment and look again"
	case len(live) == 0:
		r.Text = fmt.Sprintf("it waits for members of its group: %d have ended, %d more were not looked at", ended, unlooked)
		r.Remedy = fmt.Sprintf("see which: holdfast groups show %s", job.Group)
	default:
		named := strings.Join(live[:min(len(live), mostNamed)], ", ")
		if more := len(live) - mostNamed + unlooked; more > 0 && len(live) >= mostNamed {
			named += fmt.Sprintf(" and up to %d more", more)
		}
		r.Text = fmt.Sprintf("it waits for members of its group that have not ended: %s; %d of %d have", named, ended, len(job.After))
		r.Remedy = fmt.Sprintf("see why they take their time: holdfast explain %s", strings.Fields(live[0])[0])
	}
	return r
}

// followed explains a member that was cancelled because of another.
func followed(job holdfast.Job) Reason {
	return Reason{
		Name:   "upstream",
		Text:   fmt.Sprintf("it was cancelled %s because member %s of its group, for which it waited, did not complete", when(job.FinishedAt), job.Upstream),
		Remedy: fmt.Sprintf("see what failed: holdfast explain %s; then send round what failed and all that follows: holdfast groups retry %s", job.Upstream, job.Group),
	}
}

// idle tells whether somebody paused a duty that a job needs.
func (s *Service) idle(ctx context.Context, name, therefore string) ([]Reason, error) {
	duties, err := s.Duties(ctx)
	for _, d := range duties {
		if d.Name != name || !d.Paused {
			continue
		}
		text := fmt.Sprintf("the duty %s is paused by %s, so %s", name, d.Actor, therefore)
		if d.Reason != "" {
			text += ": " + d.Reason
		}
		return []Reason{{Name: "duty paused", Text: text, Remedy: "let it go on: holdfast duties resume " + name, Until: d.Until}}, nil
	}
	return nil, err
}

// explainPurged tells what a tombstone still knows. Where even that is gone, what the store said stands.
func (s *Service) explainPurged(ctx context.Context, id holdfast.ID, said error) (Explanation, error) {
	stones, _, err := s.store.Tombstones(ctx, holdfast.TombstoneFilter{Job: id, Limit: 1})
	if err != nil {
		return Explanation{}, err
	}
	if len(stones) == 0 {
		return Explanation{}, said
	}
	t := stones[0]
	job := holdfast.Job{ID: t.Job, Kind: t.Kind, Queue: t.Queue, Owner: t.Owner, Group: t.Group, State: t.State, FinishedAt: t.FinishedAt}
	how := string(t.State)
	if t.Code != "" {
		how += " with " + t.Code
	}
	text := fmt.Sprintf("it ended %s, %s, and was purged %s by the rule %s", when(t.FinishedAt), how, when(t.PurgedAt), t.Rule)
	return Explanation{job, []Reason{{Name: "purged", Text: text, Remedy: "enqueue it again if it is still wanted; to keep such jobs longer, change the rules: holdfast retention apply FILE"}}}, nil
}
