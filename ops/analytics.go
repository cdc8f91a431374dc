package ops

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// Analytics shows whether retries help, and what they cost.
type Analytics struct {
	Within     time.Duration `json:"within"`     // covers jobs that were created within this time
	Kinds      []KindStats   `json:"kinds"`      // the kind that wastes the most time first
	Retries    []RetryEffect `json:"retries"`    // by kind, code and number of the attempt
	Recoveries []Recovery    `json:"recoveries"` // of dependencies, the latest first, as far back as breakers keep their history
}

// KindStats are the numbers of one kind.
type KindStats struct {
	Kind     string `json:"kind"`
	Jobs     int    `json:"jobs"`      // that made a first attempt
	FirstTry int    `json:"first_try"` // completed by the first attempt
	Later    int    `json:"later"`     // completed by a retry
	GaveUp   int    `json:"gave_up"`   // failed for good
	Attempts int    `json:"attempts"`  // first attempts and retries; released attempts do not count
	Retries  int    `json:"retries"`
	// Amplification is the number of attempts for each first attempt: 1 if nothing is ever retried.
	Amplification float64 `json:"amplification"`

	Took   time.Duration `json:"took"`   // run time of failed attempts
	Wasted time.Duration `json:"wasted"` // part of Took that belongs to jobs that failed for good in the end

	Cost      float64 `json:"cost,omitempty"`       // of all attempts, if the policy gives the kind a cost
	RetryCost float64 `json:"retry_cost,omitempty"` // of the retries
}

// RetryEffect is the result of retries after one code and attempt number.
type RetryEffect struct {
	Kind     string        `json:"kind"`
	Code     string        `json:"code"`
	Number   int           `json:"number"` // of the attempt that failed, 1 the first
	Failed   int           `json:"failed"` // number of attempts that failed this way
	Complete int           `json:"complete"`
	Again    int           `json:"again"`
	GaveUp   int           `json:"gave_up"`
	Success  float64       `json:"success"` // share of next attempts that completed; 0 if there was none
	Wasted   time.Duration `json:"wasted"`
}

// Analytics sums up the attempts of jobs that were created within a time, and the recoveries of dependencies.
func (s *Service) Analytics(ctx context.Context, within time.Duration) (Analytics, error) {
	if within <= 0 {
		return Analytics{}, invalid("within %v: give a positive duration, such as 24h", within)
	}
	experience, err := s.store.RetryStats(ctx, within)
	if err != nil {
		return Analytics{}, err
	}
	cost, err := s.costs(ctx)
	if err != nil {
		return Analytics{}, err
	}
	answer := Analytics{Within: within, Kinds: kindFigures(experience, cost), Retries: retried(experience)}
	answer.Recoveries, err = s.recoveries(ctx)
	return answer, err
}

func kindFigures(experience []store.RetryStats, cost func(kind string) float64) []KindStats {
	kinds := map[string]*KindStats{}
	for _, e := range experience {
		k := kinds[e.Kind]
		if k == nil {
			k = &KindStats{Kind: e.Kind}
			kinds[e.Kind] = k
		}
		if e.Number == 0 {
			k.Jobs, k.FirstTry = k.Jobs+e.Attempts, k.FirstTry+e.Complete
			continue
		}
		k.Later += e.Complete
		k.GaveUp += e.GaveUp
		k.Retries += e.Complete + e.Again
		k.Took += e.Took
		k.Wasted += e.Wasted
	}
	list := make([]KindStats, 0, len(kinds))
	for _, k := range kinds {
		k.Attempts = k.Jobs + k.Retries
		if k.Jobs > 0 {
			k.Amplification = float64(k.Attempts) / float64(k.Jobs)
		}
		k.Cost, k.RetryCost = cost(k.Kind)*float64(k.Attempts), cost(k.Kind)*float64(k.Retries)
		list = append(list, *k)
	}
	slices.SortFunc(list, func(a, b KindStats) int {
		return cmp.Or(cmp.Compare(b.Wasted, a.Wasted), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

func retried(experience []store.RetryStats) []RetryEffect {
	list := []RetryEffect{}
	for _, e := range experience {
		if e.Number == 0 {
			continue
		}
		r := RetryEffect{Kind: e.Kind, Code: e.Code, Number: e.Number, Failed: e.Attempts, Complete: e.Complete, Again: e.Again, GaveUp: e.GaveUp, Wasted: e.Wasted}
		if next := e.Complete + e.Again; next > 0 {
			r.Success = float64(e.Complete) / float64(next)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b RetryEffect) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Number, b.Number))
	})
	return list
}
