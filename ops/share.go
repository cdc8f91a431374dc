package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Share is an owner's weight where owners compete: one of weight 3 is given three jobs where another is given one. Owners
// nobody has spoken of have weight 1.
type Share struct {
	Owner  string    `json:"owner"`
	Weight float64   `json:"weight"`
	Since  time.Time `json:"since"`
}

// weight is a share as it is recorded.
type weight struct {
	Weight float64 `json:"weight"`
}

const shareRoom = "share"

// Shares lists the owners whose weight somebody has set.
func (s *Service) Shares(ctx context.Context) ([]Share, error) {
	records, err := s.store.Records(ctx, shareRoom)
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

// SetShare gives an owner a weight, and keeps who said so. A weight of 1 is what everybody has: it is forgotten.
func (s *Service) SetShare(ctx context.Context, share Share, by By) error {
	switch {
	case share.Owner == "":
		return invalid("no owner: say whose weight it is")
	case by.check() != nil:
		return by.check()
	case !(share.Weight >= 0.001 && share.Weight <= 1000) || math.IsNaN(share.Weight):
		return invalid("weight %v: give a number from 0.001 to 1000; 1 is what everybody has", share.Weight)
	}
	body, err := json.Marshal(weight{share.Weight})
	if err != nil {
		return err
	}
	return s.keep(ctx, shareRoom, share.Owner, func(r holdfast.Record) (holdfast.Change, error) {
		was := weight{1}
		if r.Version == 0 || json.Unmarshal(r.Body, &was) == nil {
			if was.Weight == share.Weight {
				return holdfast.Change{}, nil
			}
		}
		r.Body = body
		if share.Weight == 1 {
			r.Body = nil
		}
		change := holdfast.Change{Events: []holdfast.Event{by.says(shareRoom+"/"+share.Owner, fmt.Sprintf("weight %v", share.Weight))}}
		if r.Body != nil || r.Version > 0 {
			change.Records = []holdfast.Record{r}
		}
		return change, nil
	})
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
