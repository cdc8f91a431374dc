package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Share is an owner's weight when owners compete for workers: an owner of weight 3 gets three jobs for each job of an
// owner of weight 1. The default weight is 1.
type Share struct {
	Owner  string    `json:"owner"`
	Weight float64   `json:"weight"`
	Since  time.Time `json:"since"`
}

// weight is the body of a share's record.
type weight struct {
	Weight float64 `json:"weight"`
}

const namespaceShare = "share"

// Shares returns the owners whose weight was set.
func (s *Service) Shares(ctx context.Context) ([]Share, error) {
	records, err := s.store.Records(ctx, namespaceShare)
	if err != nil {
		return nil, err
	}
	shares := make([]Share, 0, len(records))
	for _, r := range records {
		var w weight
		if json.Unmarshal(r.Body, &w) == nil {
			shares = append(shares, Share{Owner: r.Name, Weight: w.Weight, Since: r.KeptAt})
		}
	}
	return shares, nil
}

// SetShare sets the weight of an owner and records the change. Setting weight 1, the default, deletes the record.
func (s *Service) SetShare(ctx context.Context, share Share, by Actor) error {
	switch {
	case share.Owner == "":
		return invalid("no owner: name the owner")
	case by.check() != nil:
		return by.check()
	case !(share.Weight >= 0.001 && share.Weight <= 1000) || math.IsNaN(share.Weight):
		return invalid("weight %v: give a number from 0.001 to 1000; 1 is the default", share.Weight)
	}
	body, err := json.Marshal(weight{share.Weight})
	if err != nil {
		return err
	}
	return s.updateRecord(ctx, namespaceShare, share.Owner, func(r store.Record) (store.Change, error) {
		was := weight{1}
		if r.Version == 0 || json.Unmarshal(r.Body, &was) == nil {
			if was.Weight == share.Weight {
				return store.Change{}, nil
			}
		}
		r.Body = body
		if share.Weight == 1 {
			r.Body = nil
		}
		change := store.Change{Events: []store.Event{by.event(namespaceShare+"/"+share.Owner, fmt.Sprintf("weight %v", share.Weight))}}
		if r.Body != nil || r.Version > 0 {
			change.Records = []store.Record{r}
		}
		return change, nil
	})
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
