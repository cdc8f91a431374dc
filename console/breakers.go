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

// mountBreakers mounts the cards, the page of one breaker, and what a person can say to it.
func (c *Console) mountBreakers() {
	c.see("/breakers", breakers)
	c.see("/breakers/{dependency}", oneBreaker)
	c.do("/breakers/{dependency}/open", apikey.Operator, moveBreaker("is open. It is probed in time, and comes back by itself.", ops.Desk.OpenBreaker))
	c.do("/breakers/{dependency}/close", apikey.Operator, moveBreaker("is closed. Its jobs come back little by little.", ops.Desk.CloseBreaker))
	c.do("/breakers/{dependency}/auto", apikey.Operator, moveBreaker("decides by itself again.", ops.Desk.AutoBreaker))
	force := func(open bool) func(ops.Desk, context.Context, string, ops.By) error {
		return func(d ops.Desk, ctx context.Context, dependency string, by ops.By) error {
			return d.ForceBreaker(ctx, dependency, open, by)
		}
	}
	c.do("/breakers/{dependency}/force-open", apikey.Operator, moveBreaker("is kept open until somebody lets it decide by itself.", force(true)))
	c.do("/breakers/{dependency}/force-closed", apikey.Operator, moveBreaker("is kept closed until somebody lets it decide by itself.", force(false)))
}

// moveBreaker is a person's word on a breaker.
func moveBreaker(text string, do func(d ops.Desk, ctx context.Context, dependency string, by ops.By) error) deed {
	return func(q *ask) (done, error) {
		dependency := q.PathValue("dependency")
		if q.text("reason") == "" {
			return done{}, unfit("nothing was done: say why, so that others understand it later")
		}
		return done{text: "The breaker of " + cut(dependency, 100) + " " + text}, do(q.desk, q.ctx, dependency, q.by())
	}
}

// A breakerCard is one breaker as it is shown.
type breakerCard struct {
	ops.Breaker
	Anchor string // where it is on the page
	Self   string // the address of its own page, which its actions begin with
	Back   string
	May    bool
	Sign   sign
	Says   string // what it does now, in words
	Rule   breaker.Config
	Share  float64 // of the calls in its window that failed
	Few    bool    // too few calls to judge
	Gauge  template.HTML
	Strip  template.HTML
	Past   past
	Search string // finds the jobs that wait for it
	now    time.Time
}

// A breakerChange is one of its transitions, as it is shown.
type breakerChange struct {
	breaker.Transition
	Sign sign
}

// Changes are what happened to it, the newest first.
func (c breakerCard) Changes() (all []breakerChange) {
	for _, one := range c.History {
		all = append(all, breakerChange{one, signOfBreaker(one.To)})
	}
	return all
}

// Keeps reports whether jobs may wait for it.
func (c breakerCard) Keeps() bool {
	return c.Behind > 0 || c.State != breaker.Closed && c.State != breaker.ForcedClosed
}

// Due reports whether it is time for a probe, and none was made yet.
func (c breakerCard) Due() bool { return !c.NextProbe.IsZero() && !c.NextProbe.After(c.now) }

// breakerList is the page of all of them.
type breakerList struct {
	Cards  []breakerCard
	Open   int
	Behind int // jobs that wait for any of them
}

// breakers shows a card each: those that keep jobs back first.
func breakers(q *ask) (page, error) {
	all, err := q.desk.Breakers(q.ctx)
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

// urgency is which states come first.
var urgency = map[breaker.State]int{breaker.Open: 0, breaker.ForcedOpen: 1, breaker.HalfOpen: 2, breaker.Recovering: 3, breaker.ForcedClosed: 4, breaker.Closed: 5}

// oneBreaker shows one, with all its transitions.
func oneBreaker(q *ask) (page, error) {
	one, err := q.desk.Breaker(q.ctx, q.PathValue("dependency"))
	if err != nil {
		return page{}, err
	}
	return page{name: "breaker", here: "breakers", title: "Breaker of " + one.Dependency, topics: []string{"breakers", "holds"}, data: cardOf(q, one, breakerRules(q))}, nil
}

// breakerRules are the policies by which breakers are judged: those applied to the store, or else those of the workers.
func breakerRules(q *ask) *policy.Set {
	if applied, err := q.desk.Policy(q.ctx); err == nil {
		if set, _, err := policy.ParseLenient([]byte(applied.Text), nil); err == nil { // codes do not matter to breakers
			return set
		}
	}
	return q.c.cfg.Policies
}

// cardOf puts a breaker into words and pictures.
func cardOf(q *ask, b ops.Breaker, rules *policy.Set) breakerCard {
	card := breakerCard{
		Breaker: b, Anchor: "b-" + b.Dependency, Self: q.link("/breakers/" + url.PathEscape(b.Dependency)), Back: q.link(q.URL.RequestURI()), May: q.may(apikey.Operator),
		Sign: signOfBreaker(b.State), Says: breakerSays[b.State], Rule: rules.Breaker(b.Dependency).Filled(), Search: "state:queued dependency:" + b.Dependency, now: q.now,
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
	card.Past = pastOf(b, q.now)
	card.Strip = card.Past.draw(q.prefs.clock())
	return card
}

func signOfBreaker(s breaker.State) sign {
	shape := map[breaker.State]string{breaker.Closed: "closed", breaker.Open: "open", breaker.HalfOpen: "partial", breaker.Recovering: "processing", breaker.ForcedOpen: "open", breaker.ForcedClosed: "closed"}[s]
	tone := map[breaker.State]string{breaker.ForcedOpen: "open", breaker.ForcedClosed: "hold", breaker.Recovering: "hold"}[s]
	word := map[breaker.State]string{breaker.HalfOpen: "half-open", breaker.ForcedOpen: "kept open", breaker.ForcedClosed: "kept closed"}[s]
	return sign{cmp.Or(word, string(s)), cmp.Or(tone, string(s)), cmp.Or(shape, "closed")}
}

// breakerSays is what each state means for jobs.
var breakerSays = map[breaker.State]string{
	breaker.Closed:       "Calls go through.",
	breaker.Open:         "Nothing calls it. Its jobs wait in their queues and spend no attempt.",
	breaker.HalfOpen:     "A few jobs at a time call it, to see whether it is back. The others wait.",
	breaker.Recovering:   "It is back. Its jobs return little by little.",
	breaker.ForcedOpen:   "Nothing calls it, whatever it would answer, until somebody lets it decide by itself.",
	breaker.ForcedClosed: "Everything calls it, whatever fails, until somebody lets it decide by itself.",
}
