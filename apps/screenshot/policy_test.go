package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// The policies of the specification that act over minutes and hours: the service runs in virtual time (testing/synctest), with its engine and an SQLite store, and with a
// camera of the test instead of browsers.

// A scriptedCamera takes pictures without a browser. It is safe for concurrent use.
type scriptedCamera struct {
	mu    sync.Mutex
	takes time.Duration          // how long a picture takes
	left  map[string]int         // how many pictures of a host still fail; without an entry: all
	fails map[string]string      // code of the failures, by host; "*" for all hosts, and then the probe fails too
	hold  chan struct{}          // pictures of the host hold.example are taken when it is closed
	taken map[string][]time.Time // when pictures were begun, by host
	busy  int
	most  int // how many were taken at once since the test last set it
}

// newCamera returns a camera that needs a second and a bit for a picture: in virtual time attempts end between the ticks of the engine's duties, so that no goroutine waits
// for a mutex while the store's writer waits for a transaction of the service.
func newCamera() *scriptedCamera {
	return &scriptedCamera{takes: 1013 * time.Millisecond, left: map[string]int{}, hold: make(chan struct{}), fails: map[string]string{}, taken: map[string][]time.Time{}}
}

// Take takes a picture.
func (c *scriptedCamera) Take(ctx context.Context, o shot.Options) (*shot.Picture, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.taken[u.Hostname()] = append(c.taken[u.Hostname()], time.Now())
	c.busy++
	c.most = max(c.most, c.busy)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
	}()
	ready := time.After(c.takes)
	if u.Hostname() == "hold.example" {
		select {
		case <-c.hold:
		case <-ctx.Done():
		}
	}
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, host := range []string{u.Hostname(), "*"} {
		if name := c.fails[host]; name != "" {
			if n, limited := c.left[host]; limited {
				if n == 0 {
					continue
				}
				c.left[host]--
			}
			return nil, code.New(name, u.Hostname(), nil)
		}
	}
	return &shot.Picture{Data: []byte("a picture"), Format: shot.PNG, Facts: shot.Facts{Status: 200}}, nil
}

// Probe fails while all hosts fail.
func (c *scriptedCamera) Probe(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name := c.fails["*"]; name != "" {
		return code.New(name, "", nil)
	}
	return nil
}

// Status returns nothing.
func (c *scriptedCamera) Status() browser.Status { return browser.Status{} }

// set sets the code with which the pictures of a host fail; empty: they do not.
func (c *scriptedCamera) set(host, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails[host] = name
}

// setTimes makes so many pictures of a host fail.
func (c *scriptedCamera) setTimes(host, name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails[host], c.left[host] = name, n
}

// begun returns when the pictures of a host were begun.
func (c *scriptedCamera) begun(host string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Time(nil), c.taken[host]...)
}

// mostAtOnce returns how many pictures were taken at once since the last call.
func (c *scriptedCamera) mostAtOnce() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.most
	c.most = c.busy
	return most
}

// A bubble is a service at work in virtual time, which begins on Saturday, 1 January 2000, at 00:00 UTC.
type bubble struct {
	*scene
	camera *scriptedCamera
	caller service.Caller
}

// inBubble runs a test in virtual time. Retry policies are a YAML file; empty: the defaults.
func inBubble(t *testing.T, policies string, test func(b *bubble), env ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		path := ""
		if policies != "" {
			path = filepath.Join(t.TempDir(), "retries.yaml")
			if err := os.WriteFile(path, []byte(policies), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		set := settingsFor(t, append([]string{"RETRY_POLICIES", path, "WELCOME_CREDITS", "100000", "BROWSERS", "8"}, env...)...)
		camera := newCamera()
		s := &scene{T: t, logged: &lockedBuffer{}}
		s.openApp(set, camera)
		s.signUp()
		b := &bubble{s, camera, service.Caller{Owner: s.owner, User: s.id.User.ID, Name: "test"}}
		b.works()
		test(b)
	})
}

// urlOf returns a submission of the page of a host.
func urlOf(host string) service.Submission {
	return service.Submission{Options: shot.Options{URL: "http://" + host + "/"}}
}

// shoot submits shots of a host.
func (b *bubble) shoot(host string, n int) (ids []holdfast.ID) {
	b.Helper()
	for range n {
		job, _, err := b.service.Submit(b.Context(), b.caller, urlOf(host))
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, job.ID)
	}
	return ids
}

// job returns a shot.
func (b *bubble) job(id holdfast.ID) service.Job {
	b.Helper()
	job, err := b.service.Job(b.Context(), b.owner, id)
	if err != nil {
		b.Fatal(err)
	}
	return job
}

// becomes waits in virtual time until a shot has a status.
func (b *bubble) becomes(id holdfast.ID, status string) (job service.Job) {
	b.Helper()
	b.waits("shot "+id.String()+" is "+status, func() bool {
		job = b.job(id)
		return job.Status == status
	})
	return job
}

// waits waits up to an hour of virtual time.
func (b *bubble) waits(what string, done func() bool) {
	b.Helper()
	for deadline := time.Now().Add(time.Hour); !done(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			b.Fatalf("not in time: %s", what)
		}
	}
}

// breaker waits until the breaker of a dependency has a state, and returns since when.
func (b *bubble) breaker(dependency string, state breaker.State) (since time.Time) {
	b.Helper()
	b.waits(fmt.Sprintf("the breaker of %s is %s", dependency, state), func() bool {
		all, err := b.operator.Breakers(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, one := range all {
			if one.Dependency == dependency {
				since = one.Since
				return one.State == state
			}
		}
		return state == breaker.Closed
	})
	return since
}

func TestAUserLimitCapsTheRetriesOfTheUsersShots(t *testing.T) {
	inBubble(t, "retry: {users: [{user: Admin@localhost, maxRetries: 1}]}", func(b *bubble) {
		b.camera.set("*", code.PageTimeout)
		limited := b.shoot("a.example", 1)[0]
		b.caller.User = ""
		free := b.shoot("b.example", 1)[0]
		if job := b.becomes(limited, service.Failed); job.MaxRetries != 1 || job.RetryCount != 1 || len(b.camera.begun("a.example")) != 2 {
			b.Errorf("%d of %d retries, %d attempts", job.RetryCount, job.MaxRetries, len(b.camera.begun("a.example")))
		}
		if job := b.becomes(free, service.Failed); job.MaxRetries != 3 || len(b.camera.begun("b.example")) != 4 {
			b.Errorf("without a limit: %d retries, %d attempts", job.MaxRetries, len(b.camera.begun("b.example")))
		}
	})
}

func TestNoShotIsRetriedInATimeWindowAndTheFirstAttemptsAreMade(t *testing.T) {
	inBubble(t, `retry: {policies: [{jobType: SCREENSHOT, noRetries: [{from: "00:00", to: "00:20", days: [sat]}]}]}`, func(b *bubble) {
		b.camera.set("a.example", code.PageTimeout)
		id := b.shoot("a.example", 1)[0]
		other, _, err := b.service.Submit(b.Context(), b.caller, service.Submission{Options: shot.Options{URL: "http://b.example/", Format: shot.PDF}})
		if err != nil {
			b.Fatal(err)
		}
		b.camera.set("b.example", code.PageTimeout)
		b.becomes(other.ID, service.Failed)
		if began := b.camera.begun("b.example"); len(began) != 4 || began[3].Minute() > 5 {
			b.Errorf("the retries of a PDF, whose type has no window: %v", began)
		}
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Minute) {
			if job := b.job(id); job.Status != service.Queued || job.RetryCount != 1 || len(b.camera.begun("a.example")) != 1 {
				b.Fatalf("at %s it is %s with %d attempts", time.Now().UTC(), job.Status, len(b.camera.begun("a.example")))
			}
		}
		job := b.job(id)
		if why, err := b.service.Waits(b.Context(), &job); err != nil || !strings.HasPrefix(why, "There are no retries at this time of day until 00:") {
			b.Errorf("the page says %q, %v", why, err)
		}
		b.camera.set("a.example", "")
		b.becomes(id, service.Completed)
		began := b.camera.begun("a.example")
		end := time.Date(2000, 1, 1, 0, 20, 0, 0, time.UTC)
		if len(began) != 2 || began[1].Before(end.Add(-2*time.Second)) || began[1].After(end.Add(time.Minute)) { // the engine places the hold with a tolerance of 2 s
			b.Errorf("the attempts began at %v", began)
		}
	})
}

func TestTheBreakerOfAHostHoldsItsShotsOnlyAndLetsThemBackGradually(t *testing.T) {
	inBubble(t, "", func(b *bubble) {
		b.camera.set("down.example", code.PageConnectError)
		down := b.shoot("down.example", 200)
		b.breaker("down.example", breaker.Open)
		time.Sleep(2 * time.Second) // what ran then has ended
		before := len(b.camera.begun("down.example"))
		for _, id := range b.shoot("up.example", 5) {
			b.becomes(id, service.Completed)
		}
		job := b.job(down[199])
		if why, err := b.service.Waits(b.Context(), &job); err != nil || job.RetryCount != 0 || !strings.HasPrefix(why, "The host of the page has failed repeatedly.") {
			b.Errorf("after %d retries the page says %q, %v", job.RetryCount, why, err)
		}
		if n := len(b.camera.begun("down.example")); n != before {
			b.Errorf("%d attempts were made while the breaker was open", n-before)
		}
		b.camera.set("down.example", "")
		b.camera.mostAtOnce()
		recovered := b.breaker("down.example", breaker.Recovering)
		probes := b.camera.begun("down.example")[before:]
		for i := 2; i < len(probes) && probes[i].Before(recovered); i++ {
			if probes[i].Sub(probes[i-2]) < time.Second {
				b.Errorf("more than two probes at once: %v", probes)
			}
		}
		since := len(b.camera.begun("down.example"))
		time.Sleep(5 * time.Second)
		if n := len(b.camera.begun("down.example")) - since; n > 20 { // 8 browsers take 40 pictures in this time
			b.Errorf("%d attempts began in the first 5 seconds of the recovery", n)
		}
		b.breaker("down.example", breaker.Closed)
		for _, id := range down {
			b.becomes(id, service.Completed)
		}
		if most := b.camera.mostAtOnce(); most != 8 {
			b.Errorf("at most %d pictures at once after the recovery", most)
		}
	})
}

func TestTheBreakerOfTheBrowsersHoldsAllShotsAndLetsThemBackOneAtATime(t *testing.T) {
	inBubble(t, "", func(b *bubble) {
		b.camera.set("*", code.BrowserCrashed)
		var all []holdfast.ID
		for n := range 40 {
			all = append(all, b.shoot(fmt.Sprintf("host%d.example", n), 1)...)
		}
		attempts := func() (n int) {
			for i := range all {
				n += len(b.camera.begun(fmt.Sprintf("host%d.example", i)))
			}
			return n
		}
		b.breaker(code.Browsers, breaker.Open)
		time.Sleep(2 * time.Second)
		before := attempts()
		time.Sleep(5 * time.Minute)
		if n := attempts(); n != before || n > 20 {
			b.Errorf("%d attempts before the breaker was open, and %d while it was", before, n-before)
		}
		job := b.job(all[39])
		if why, err := b.service.Waits(b.Context(), &job); err != nil || job.RetryCount != 0 || why != "The browsers of the service do not work at the moment. This costs no attempt." {
			b.Errorf("after %d retries the page says %q, %v", job.RetryCount, why, err)
		}
		b.camera.set("*", "")
		b.camera.mostAtOnce()
		b.breaker(code.Browsers, breaker.Recovering)
		time.Sleep(5 * time.Second)
		if most, n := b.camera.mostAtOnce(), attempts()-before; most != 1 || n == 0 {
			b.Errorf("%d pictures, at most %d at once, when the breaker began to let them back", n, most)
		}
		b.breaker(code.Browsers, breaker.Closed)
		for _, id := range all {
			b.becomes(id, service.Completed)
		}
	})
}
