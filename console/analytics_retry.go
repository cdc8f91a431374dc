package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast/ops"
)

// analyticsAttempts is the number of bars. The last one counts all later attempts.
const analyticsAttempts = 10

// analyticsBars returns a bar for each attempt number with the share of attempts that completed the job, and the same in a sentence.
func analyticsBars(a ops.Analytics) (bars []chartBar, words string) {
	var tried, complete [analyticsAttempts]int
	for _, k := range a.Kinds {
		tried[0], complete[0] = tried[0]+k.Jobs, complete[0]+k.FirstTry
	}
	for _, r := range a.Retries {
		at := min(max(r.Number, 1), analyticsAttempts-1) // the attempt after failure 1 is attempt 2
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
		p := chartBar{Name: "Attempt " + name, Value: formatPercent(one), Note: num(tried[n]) + " made", Words: fmt.Sprintf("attempt %s: %s of %s completed, %s", name, num(complete[n]), num(tried[n]), formatPercent(one))}
		p.draw([]barSegment{{"chart-good", one}}, true)
		bars = append(bars, p)
	}
	if retried == 0 {
		return bars, "No retries."
	}
	return bars, fmt.Sprintf("%s retries, %s of them completed the job. The highest attempt number is %s.", num(retried), formatPercent(float64(helped)/float64(retried)), last)
}

// analyticsCodes sums the outcomes of retries by code, the most frequent first.
func analyticsCodes(retries []ops.RetryEffect) []analyticsCode {
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
		c.Bar, c.Words = parts([]part{{c.Complete, "good", "complete"}, {c.Again, "bad", "failed again"}}), analyticsVerdict(tried, c.Failed-c.GaveUp-tried, c.Success)
	}
	slices.SortFunc(codes, func(a, b analyticsCode) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Code, b.Code))
	})
	return codes
}

// analyticsVerdict says whether retries help. It makes no statement about fewer than ten.
func analyticsVerdict(tried, waiting int, success float64) string {
	switch {
	case tried == 0 && waiting > 0:
		return "not retried yet"
	case tried == 0:
		return "never retried"
	case tried < 10:
		return "too few retries"
	case success >= 0.5:
		return "retries help"
	case success >= 0.1:
		return "retries help sometimes"
	}
	return "retries rarely help: make it final, or reduce attempts"
}
