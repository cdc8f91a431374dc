package chaos

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// What a job's script can do. Every script but refuse and poison ends well, however often its worker is killed.
const (
	doNothing = "nothing" // return at once
	doSleep   = "sleep"   // work for a while
	doFail    = "fail"    // fail a few times
	doPanic   = "panic"   // panic once
	doGoexit  = "goexit"  // end its goroutine once
	doHang    = "hang"    // ignore its context once
	doSnooze  = "snooze"  // ask for later, twice
	doExit    = "exit"    // take its process along, once
	doRefuse  = "refuse"  // fail until it has failed for good
	doPoison  = "poison"  // take its process along every time
	doWait    = "wait"    // wait to be killed; never drawn, for tests of one kill
)

// A script is the kitchen sink: a job whose arguments say how it behaves.
type script struct {
	Do    string        `json:"do"`
	Times int           `json:"times,omitempty"`
	For   time.Duration `json:"for,omitempty"`
}

func (script) Kind() string { return "chaos" }

// Two kinds differ from the first in their policy alone, so that the innocent are never given up on.
type (
	hangScript   struct{ script }
	poisonScript struct{ script }
)

func (hangScript) Kind() string   { return "chaos.hang" }
func (poisonScript) Kind() string { return "chaos.poison" }

// ours reports whether a kind is one of the above: a given store may hold jobs of others.
func ours(kind string) bool { return kind == "chaos" || strings.HasPrefix(kind, "chaos.") }

// ofRun reports whether a job was made by the run that began with an id.
func ofRun(job holdfast.Job, first holdfast.ID) bool {
	return ours(job.Kind) && bytes.Compare(job.ID[:], first[:]) > 0
}

// ending is how a job with this script must end when nobody interferes.
func ending(do string) holdfast.State {
	if do == doRefuse || do == doPoison {
		return holdfast.Failed
	}
	return holdfast.Complete
}

// shares says how often each script is drawn, out of a hundred and fifty.
var shares = []struct {
	do   string
	wide int
}{
	{doNothing, 50}, {doSleep, 50}, {doFail, 20}, {doSnooze, 8}, {doPanic, 7}, {doGoexit, 5}, {doHang, 3}, {doRefuse, 5}, {doExit, 1}, {doPoison, 1},
}

// drawScript picks a behaviour.
func drawScript(r *rand.Rand) script {
	roll := r.IntN(150)
	for _, share := range shares {
		if roll -= share.wide; roll < 0 {
			return script{Do: share.do, Times: 1 + r.IntN(2), For: time.Duration(r.IntN(60)) * time.Millisecond}
		}
	}
	return script{Do: doNothing}
}

// args are the script under the kind whose policy fits it.
func (s script) args() holdfast.Args {
	switch s.Do {
	case doHang:
		return hangScript{s}
	case doPoison:
		return poisonScript{s}
	}
	return s
}
