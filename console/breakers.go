package console

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

// mountBreakers mounts the breakers page, the page of a breaker and its actions.
func (c *Console) mountBreakers() {
	c.handlePage("/breakers", breakers)
	c.handlePage("/breakers/{dependency}", oneBreaker)
	c.handleAction("/breakers/{dependency}/open", apikey.Operator, breakerAction("opened. It is probed later and closes automatically.", ops.Operator.OpenBreaker))
	c.handleAction("/breakers/{dependency}/close", apikey.Operator, breakerAction("closed. Its jobs return step by step.", ops.Operator.CloseBreaker))
	c.handleAction("/breakers/{dependency}/auto", apikey.Operator, breakerAction("set to automatic.", ops.Operator.AutoBreaker))
	force := func(open bool) func(ops.Operator, context.Context, string, ops.Actor) error {
		return func(d ops.Operator, ctx context.Context, dependency string, by ops.Actor) error {
			return d.ForceBreaker(ctx, dependency, open, by)
		}
	}
	c.handleAction("/breakers/{dependency}/force-open", apikey.Operator, breakerAction("forced open until it is set to automatic.", force(true)))
	c.handleAction("/breakers/{dependency}/force-closed", apikey.Operator, breakerAction("forced closed until it is set to automatic.", force(false)))
}

// breakerAction returns an action on a breaker. It needs a reason.
func breakerAction(text string, do func(d ops.Operator, ctx context.Context, dependency string, by ops.Actor) error) actionFunc {
	return func(q *request) (actionResult, error) {
		dependency := q.PathValue("dependency")
		if q.text("reason") == "" {
			return actionResult{}, invalid("nothing was changed: give a reason")
		}
		return actionResult{text: "Breaker of " + truncate(dependency, 100) + " " + text}, do(q.operator, q.ctx, dependency, q.by())
	}
}

// A breakerCard is the data of a breaker.
type breakerCard struct {
	ops.Breaker
	Anchor     string // id of its element
	Self       string // URL of its page, and prefix of its actions
	Back       string
	May        bool
	StateBadge stateBadge
	Text       string // what its state means for jobs
	Rule       breaker.Config
	Share      float64 // fraction of failed calls in its window
	Few        bool    // fewer calls than the minimum, so it does not open
	Gauge      template.HTML
	Strip      template.HTML
	Recent     recentStates
	Search     string // search for the jobs that it holds
	now        time.Time
}

// A breakerChange is a transition of a breaker.
type breakerChange struct {
	breaker.Transition
	StateBadge stateBadge
}

// Changes returns its transitions, the newest first.
func (c breakerCard) Changes() (all []breakerChange) {
	for _, one := range c.History {
		all = append(all, breakerChange{one, breakerBadge(one.To)})
	}
	return all
}

// HoldsJobs reports whether the breaker may hold jobs.
func (c breakerCard) HoldsJobs() bool {
	return c.Behind > 0 || c.State != breaker.Closed && c.State != breaker.ForcedClosed
}

// Due reports whether a probe is due.
func (c breakerCard) Due() bool { return !c.NextProbe.IsZero() && !c.NextProbe.After(c.now) }

// A breakerList is the data of the breakers page.
type breakerList struct {
	Cards  []breakerCard
	Open   int
	Behind int // jobs held by all breakers
}

// breakers renders a card for each breaker, those that hold jobs first.
func breakers(q *request) (page, error) {
	all, err := q.operator.Breakers(q.ctx)
	if err != nil {
		return page{}, err
	}
	rules := breakerRules(q)
	var shown breakerList
	for _, one := range all {
		shown.Cards = append(shown.Cards, cardOf(q, one, rules))
		if one.State.Refuses() {
			shown.Open++
		}
		shown.Behind += one.Behind
	}
	slices.SortStableFunc(shown.Cards, func(a, b breakerCard) int {
		return cmp.Or(cmp.Compare(urgency[a.State], urgency[b.State]), cmp.Compare(b.Behind, a.Behind))
	})
	return page{name: "breakers", title: "Breakers", topics: []string{"breakers", "holds"}, data: shown}, nil
}

// urgency is the order of states on the page.
var urgency = map[breaker.State]int{breaker.Open: 0, breaker.ForcedOpen: 1, breaker.HalfOpen: 2, breaker.Recovering: 3, breaker.ForcedClosed: 4, breaker.Closed: 5}

// oneBreaker renders the page of a breaker, with its transitions.
func oneBreaker(q *request) (page, error) {
	one, err := q.operator.Breaker(q.ctx, q.PathValue("dependency"))
	if err != nil {
		return page{}, err
	}
	return page{name: "breaker", here: "breakers", title: "Breaker of " + one.Dependency, topics: []string{"breakers", "holds"}, data: cardOf(q, one, breakerRules(q))}, nil
}

// breakerRules returns the policy for breakers: the one applied to the store, or else the file of the workers.
func breakerRules(q *request) *policy.Set {
	if applied, err := q.operator.Policy(q.ctx); err == nil {
		if set, _, err := policy.ParseLenient([]byte(applied.Text), nil); err == nil { // codes do not matter to breakers
			return set
		}
	}
	return q.c.cfg.Policies
}

// cardOf returns the card of a breaker.
func cardOf(q *request, b ops.Breaker, rules *policy.Set) breakerCard {
	card := breakerCard{
		Breaker: b, Anchor: "b-" + b.Dependency, Self: q.link("/breakers/" + url.PathEscape(b.Dependency)), Back: q.link(q.URL.RequestURI()), May: q.may(apikey.Operator),
		StateBadge: breakerBadge(b.State), Text: breakerTexts[b.State], Rule: rules.Breaker(b.Dependency).WithDefaults(), Search: "state:queued dependency:" + b.Dependency, now: q.now,
	}
	if b.Calls > 0 {
		card.Share = float64(b.Failures) / float64(b.Calls)
	}
	card.Few = b.Calls < card.Rule.MinCalls
	tone := "hold"
	if card.Share >= card.Rule.FailureRate {
		tone = "bad"
	}
	card.Gauge = gauge(card.Share, card.Rule.FailureRate, tone)
	card.Recent = recentStatesOf(b, q.now)
	card.Strip = card.Recent.draw(q.prefs.clock())
	return card
}

func breakerBadge(s breaker.State) stateBadge {
	shape := map[breaker.State]string{breaker.Closed: "closed", breaker.Open: "open", breaker.HalfOpen: "partial", breaker.Recovering: "processing", breaker.ForcedOpen: "open", breaker.ForcedClosed: "closed"}[s]
	tone := map[breaker.State]string{breaker.ForcedOpen: "open", breaker.ForcedClosed: "hold", breaker.Recovering: "hold"}[s]
	word := map[breaker.State]string{breaker.HalfOpen: "half-open", breaker.ForcedOpen: "forced open", breaker.ForcedClosed: "forced closed"}[s]
	return stateBadge{cmp.Or(word, string(s)), cmp.Or(tone, string(s)), cmp.Or(shape, "closed")}
}

// breakerTexts says what each state means for jobs.
var breakerTexts = map[breaker.State]string{
	breaker.Closed:       "Calls go through.",
	breaker.Open:         "No job calls it. Its jobs stay queued and use no attempts.",
	breaker.HalfOpen:     "A few jobs probe whether it works again. The others wait.",
	breaker.Recovering:   "It works again. Its jobs return step by step.",
	breaker.ForcedOpen:   "No job calls it until the breaker is set to automatic.",
	breaker.ForcedClosed: "All jobs call it, whatever fails, until the breaker is set to automatic.",
}
