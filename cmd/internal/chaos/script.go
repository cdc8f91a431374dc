package chaos

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The actions of scripts. A job with any action but refuse and poison completes in the end, however often its worker is killed.
const (
	doNothing = "nothing" // return immediately
	doSleep   = "sleep"   // take some time
	doFail    = "fail"    // fail once or twice
	doPanic   = "panic"   // panic once
	doGoexit  = "goexit"  // end its goroutine once
	doHang    = "hang"    // ignore its context once
	doSnooze  = "snooze"  // snooze once or twice
	doExit    = "exit"    // end the process, once
	doRefuse  = "refuse"  // fail until it has failed for good
	doPoison  = "poison"  // end the process at every attempt
	doWait    = "wait"    // wait until the worker is killed; for tests of a single kill, never drawn
)

// A script is the arguments of a chaos job: they say how its handler behaves.
type script struct {
	Do    string        `json:"do"`
	Times int           `json:"times,omitempty"`
	For   time.Duration `json:"for,omitempty"`

	Next    int         `json:"next,omitempty"`    // how many jobs its handler enqueues
	Parent  holdfast.ID `json:"parent,omitzero"`   // the job whose handler enqueued this one
	Content string      `json:"content,omitempty"` // different in every draft that may replace a job
}

func (script) Kind() string { return "chaos" }

// These two kinds have policies of their own. With the policy of the others no job is given up because of crashes.
type (
	hangScript   struct{ script }
	poisonScript struct{ script }
)

func (hangScript) Kind() string   { return "chaos.hang" }
func (poisonScript) Kind() string { return "chaos.poison" }

// isChaosKind reports whether a kind belongs to chaos runs: a store may contain other jobs.
func isChaosKind(kind string) bool { return kind == "chaos" || strings.HasPrefix(kind, "chaos.") }

// belongsToRun reports whether a job belongs to the run whose first id is given.
func belongsToRun(job holdfast.Job, first holdfast.ID) bool {
	return isChaosKind(job.Kind) && bytes.Compare(job.ID[:], first[:]) > 0
}

// expectedEnd is the state in which a job with this script must end, unless it is cancelled.
func expectedEnd(do string) holdfast.State {
	if do == doRefuse || do == doPoison {
		return holdfast.Failed
	}
	return holdfast.Complete
}

// scriptWeights are the weights with which scripts are drawn, out of 150.
var scriptWeights = []struct {
	do     string
	weight int
}{
	{doNothing, 50}, {doSleep, 50}, {doFail, 20}, {doSnooze, 8}, {doPanic, 7}, {doGoexit, 5}, {doHang, 3}, {doRefuse, 5}, {doExit, 1}, {doPoison, 1},
}

// drawScript picks a random script.
func drawScript(r *rand.Rand) script {
	roll := r.IntN(150)
	for _, share := range scriptWeights {
		if roll -= share.weight; roll < 0 {
			return script{Do: share.do, Times: 1 + r.IntN(2), For: time.Duration(r.IntN(60)) * time.Millisecond}
		}
	}
	return script{Do: doNothing}
}

// args returns the script as arguments of the kind with the right policy.
func (s script) args() holdfast.Args {
	switch s.Do {
	case doHang:
		return hangScript{s}
	case doPoison:
		return poisonScript{s}
	}
	return s
}
