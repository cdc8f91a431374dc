package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast/ops"
)

// analyticsAttempts is how many attempts have a pillar of their own; later ones share the last.
const analyticsAttempts = 10

// analyticsPillars draws, for the first attempt, the second and so on, which share of them completed. A sentence tells the same.
func analyticsPillars(a ops.Analytics) (pillars []pillar, words string) {
	var tried, complete [analyticsAttempts]int
	for _, k := range a.Kinds {
		tried[0], complete[0] = tried[0]+k.Jobs, complete[0]+k.FirstTry
	}
	for _, r := range a.Retries {
		at := min(max(r.Number, 1), analyticsAttempts-1) // after the first failure comes the second attempt
		tried[at], complete[at] = tried[at]+r.Complete+r.Again, complete[at]+r.Complete
	}
	retried, helped, last := 0, 0, ""
	for n := range tried {
		if tried[n] == 0 {
			continue
		}
		one := float64(complete[n]) / float64(tried[n])
		name := strconv.Itoa(n + 1)
		if n == analyticsAttempts-1 {
			name += " or later"
		}
		if last = name; n > 0 {
			retried, helped = retried+tried[n], helped+complete[n]
		}
		p := pillar{Name: "Attempt " + name, Value: share(one), Note: num(tried[n]) + " made", Words: fmt.Sprintf("attempt %s: %s of %s completed, %s", name, num(complete[n]), num(tried[n]), share(one))}
		p.draw([]pillarPart{{"chart-good", one}}, true)
		pillars = append(pillars, p)
	}
	if retried == 0 {
		return pillars, "Nothing was retried."
	}
	return pillars, fmt.Sprintf("Retries: %s were made, %s of them completed the job. The last attempt of any job was number %s.", num(retried), share(float64(helped)/float64(retried)), last)
}

// analyticsCodes adds up what came of trying again, by code: the one that failed most first.
func analyticsCodes(retries []ops.Retried) []analyticsCode {
	at := map[string]int{}
	var codes []analyticsCode
	for _, r := range retries {
		i, known := at[r.Code]
		if !known {
			i = len(codes)
			at[r.Code], codes = i, append(codes, analyticsCode{Code: r.Code})
		}
		c := &codes[i]
		c.Failed, c.Complete, c.Again, c.GaveUp, c.Wasted = c.Failed+r.Failed, c.Complete+r.Complete, c.Again+r.Again, c.GaveUp+r.GaveUp, c.Wasted+r.Wasted
	}
	for i := range codes {
		c := &codes[i]
		tried := c.Complete + c.Again
		if tried > 0 {
			c.Success = float64(c.Complete) / float64(tried)
		}
		c.Bar, c.Words = parts([]part{{c.Complete, "good", "completed next"}, {c.Again, "bad", "failed again"}}), analyticsVerdict(tried, c.Failed-c.GaveUp-tried, c.Success)
	}
	slices.SortFunc(codes, func(a, b analyticsCode) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Code, b.Code))
	})
	return codes
}

// analyticsVerdict says whether trying again helps. Few attempts say little.
func analyticsVerdict(tried, waiting int, success float64) string {
	switch {
	case tried == 0 && waiting > 0:
		return "not tried again yet"
	case tried == 0:
		return "never tried again"
	case tried < 10:
		return "too few to tell"
	case success >= 0.5:
		return "trying again helps"
	case success >= 0.1:
		return "trying again helps now and then"
	}
	return "trying again hardly ever helps: make it final, or fewer attempts"
}
