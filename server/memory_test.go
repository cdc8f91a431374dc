package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// opensBulk opens a bulk stream and sends the beginning of a line.
func (s *gateScene) opensBulk(who string, bytes int) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "POST /v1/jobs/bulk HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n", s.addr, s.keys[who])
	go func() {
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
		for sent := 0; sent < bytes; sent += 64 << 10 {
			if _, err := io.WriteString(conn, chunk); err != nil {
				return
			}
		}
	}()
	return conn
}

// Without the limit, 128 streams with a line of 3.9 MiB without an end used 885 MiB.
func TestEndlessLinesStayWithinTheBodyMemoryLimit(t *testing.T) {
	const most = 8 << 20
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{Bytes: most} })
	idle, stop := held(), make(chan struct{})
	seen := peak(stop)
	var conns []net.Conn
	for range 24 {
		conns = append(conns, s.opensBulk("own", 3900<<10))
	}
	refused := make(chan bool, len(conns))
	for _, conn := range conns {
		go func() {
			lines := bufio.NewReader(conn)
			for {
				line, err := lines.ReadString('\n')
				if strings.Contains(line, `"status":503`) || strings.Contains(line, "503 Service Unavailable") {
					refused <- true
					return
				}
				if err != nil {
					refused <- false
					return
				}
			}
		}()
	}
	if !<-refused {
		t.Error("a stream ended without a word")
	}
	if held := s.srv.bodies.held.Load(); held > most {
		t.Errorf("%d bytes are held of %d", held, most)
	}
	eventually(t, "the others are heard", func() bool {
		return s.ask("admin", "POST", "/v1/jobs", `{"kind":"mail"}`).status == http.StatusCreated
	})
	for _, conn := range conns {
		_ = conn.Close()
	}
	eventually(t, "all is given back", func() bool { return s.srv.bodies.held.Load() == 0 })
	close(stop)
	if above := <-seen; above > idle+memoryAbove {
		t.Errorf("the heap grew from %d to %d MiB", idle>>20, above>>20)
	}
}

// Without the reserve, renewals were refused under overload, when bodies of jobs used all the memory.
func TestWorkersAreServedWhenBodiesUseAllMemory(t *testing.T) {
	const most = 8 << 20
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{Bytes: most} })
	renewal := func() int {
		return s.ask("worker", "POST", "/v1/claims/renew", `{"renewals":[{"batch":"`+holdfast.NewID().String()+`"}]}`).status
	}
	results := func() int { // more than the first bytes
		one := `{"batch":"` + holdfast.NewID().String() + `","job":"` + holdfast.NewID().String() + `","token":1,"to":"complete"}`
		return s.ask("worker", "POST", "/v1/claims/settle", `{"settlements":[`+one+strings.Repeat(","+one, 100)+`]}`).status
	}
	enqueue := func() int { return s.ask("admin", "POST", "/v1/jobs", `{"kind":"mail"}`).status }
	for _, c := range []struct {
		held     int64
		enqueued int
		settled  int
	}{{0, http.StatusCreated, http.StatusOK}, {most * 3 / 4, http.StatusServiceUnavailable, http.StatusOK}, {most, http.StatusServiceUnavailable, http.StatusServiceUnavailable}} {
		s.srv.bodies.held.Store(c.held)
		if renewed, settled, enqueued := renewal(), results(), enqueue(); renewed != http.StatusOK || settled != c.settled || enqueued != c.enqueued {
			t.Errorf("with %d of %d bytes held: renewal %d, results %d, enqueue %d", c.held, most, renewed, settled, enqueued)
		}
	}
}

func TestLineMemoryIsFreedWhenLinesAreEnqueued(t *testing.T) {
	s := newGateScene(t)
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, `{"kind":"mail","args":{"n":%d,"text":"%s"}}`+"\n\n", i, strings.Repeat("x", 2000))
	}
	lines.WriteString(strings.Repeat("y", streamLine+10) + "\n" + `{"kind":"mail"}`)
	request, _ := http.NewRequest("POST", "http://"+s.addr+"/v1/jobs/bulk?quiet=true", strings.NewReader(lines.String()))
	request.Header.Set("Authorization", "Bearer "+s.keys["admin"])
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if !strings.Contains(string(text), `"enqueued":301`) || !strings.Contains(string(text), `"refused":1`) {
		t.Errorf("%s", text)
	}
	eventually(t, "all is given back", func() bool { return s.srv.bodies.held.Load() == 0 })
}

// Without the limit, 24 slow readers of a list of 60 jobs of 1 MiB used 1.9 GiB.
func TestAnswersToSlowReadersCountAgainstTheMemoryLimit(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{Bytes: 24 << 20} })
	large := `{"kind":"mail","args":"` + strings.Repeat("x", 1000<<10) + `"}`
	for range 20 {
		if a := s.ask("admin", "POST", "/v1/jobs", large); a.status != http.StatusCreated {
			t.Fatal(a.status, a.body)
		}
	}
	first := s.ask("viewer", "GET", "/v1/jobs?limit=200", "")
	if first.status != http.StatusOK || len(first.body) > 9<<20 || !strings.Contains(first.header.Get("Link"), "cursor=") {
		t.Fatalf("%d, %d bytes, %s", first.status, len(first.body), first.header.Get("Link"))
	}
	slow := func() *bufio.Reader {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "GET /v1/jobs?limit=200 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", s.addr, s.keys["viewer"])
		return bufio.NewReaderSize(conn, 512)
	}
	refused := false
	for range 6 {
		line, err := slow().ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		refused = refused || strings.Contains(line, "503")
	}
	if !refused || s.srv.answers.held.Load() > s.srv.cfg.Limits.Bytes {
		t.Errorf("refused %v, %d bytes held", refused, s.srv.answers.held.Load())
	}
	if a := s.ask("admin", "POST", "/v1/claims", `{"worker":"w","limit":100}`); a.status != http.StatusOK || len(a.body) > 20<<20 {
		t.Errorf("another key claims: %d, %d bytes", a.status, len(a.body))
	}
}

// A countingStore records the limit of each claim, and returns as many jobs of a given size.
type countingStore struct {
	store.Store
	size  int
	left  int
	asked []int
	bytes []int
	busy  []int
}

func (s *countingStore) Claim(_ context.Context, c store.Claim) ([]store.Lease, error) {
	s.asked, s.bytes, s.busy = append(s.asked, c.Limit), append(s.bytes, c.Bytes), append(s.busy, c.Busy["acme"])
	n := min(c.Limit, s.left)
	if c.Bytes > 0 {
		n = min(n, max(1, c.Bytes/s.size))
	}
	leases := make([]store.Lease, n)
	for i := range leases {
		leases[i].Owner, leases[i].Args = "acme", make([]byte, s.size)
	}
	s.left -= len(leases)
	return leases, nil
}

func TestAClaimTakesAsManyJobsAsFitIntoAnAnswer(t *testing.T) {
	for _, c := range []struct {
		size, there, limit int
		asked, want        int
	}{
		{100, 10_000, 1, 1, 1}, {100, 10_000, 8, 1, 8}, {100, 10_000, 1000, 8, 1000}, {100, 70, 1000, 4, 70}, {100, 0, 1000, 1, 0},
		{100 << 10, 10_000, 1000, 3, 56}, {1 << 20, 10_000, 1000, 1, 8},
	} {
		db := &countingStore{size: c.size, left: c.there}
		busy := map[string]int{"acme": 3}
		leases, err := new(claimSizer).claimInParts(t.Context(), db.Claim, store.Claim{Limit: c.limit, Start: c.limit, OwnerSlots: 5000, Busy: busy})
		if err != nil || len(leases) != c.want || len(db.asked) != c.asked || slices.Max(db.asked) > largestClaim {
			t.Errorf("%+v: %d leases in %v, %v", c, len(leases), db.asked, err)
		}
		taken := 3
		for i, n := range db.busy {
			if n != taken {
				t.Errorf("%+v: claim %d counts %d of the owner, want %d", c, i, n, taken)
			}
			taken += db.asked[i]
		}
		if busy["acme"] != 3 {
			t.Error("the caller's own count was changed")
		}
	}
}

func TestAClaimOfSmallJobsIsNotDivided(t *testing.T) {
	db := &countingStore{size: 100, left: 100_000}
	var small claimSizer
	claim := func(limit, bytes int) int {
		leases, err := small.claim(t.Context(), db.Claim, store.Claim{Limit: limit, Bytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		return len(leases)
	}
	for n := 0; n < onlySmall; {
		n += claim(1000, 0)
	}
	db.asked, db.bytes = nil, nil
	claim(10_000, 0)
	claim(10_000, 50<<20)
	claim(10_000, 1<<20)
	if !slices.Equal(db.asked, []int{10_000, 10_000, 10_000}) || !slices.Equal(db.bytes, []int{mostAnswer, mostAnswer, 1 << 20}) {
		t.Errorf("claims of %v jobs and %v bytes", db.asked, db.bytes)
	}
	db.size = 1 << 20 // larger than the jobs before
	if n := claim(10_000, 0); n != 8 {
		t.Errorf("%d large jobs in one answer", n)
	}
	db.asked = nil
	if claim(10_000, 0); slices.Max(db.asked) > firstClaim {
		t.Errorf("after large jobs, claims of %v", db.asked)
	}
}

func TestADividedClaimLosesNoLargeJob(t *testing.T) {
	s := newGateScene(t)
	large := `{"kind":"mail","args":"` + strings.Repeat("x", 1000<<10) + `"}`
	for range 20 {
		if a := s.ask("admin", "POST", "/v1/jobs", large); a.status != http.StatusCreated {
			t.Fatal(a.status, a.body)
		}
	}
	claimed := map[string]bool{}
	for range 20 {
		a := s.ask("worker", "POST", "/v1/claims", `{"worker":"w","limit":1000}`)
		if a.status != http.StatusOK || len(a.body) > 12<<20 {
			t.Fatal(a.status, len(a.body))
		}
		var out api.ClaimOut
		if err := api.Unmarshal([]byte(a.body), &out); err != nil {
			t.Fatal(err)
		}
		for _, l := range out.Leases {
			claimed[l.ID.String()] = true
		}
	}
	if len(claimed) != 20 {
		t.Errorf("%d of 20 jobs were claimed", len(claimed))
	}
}

func TestStreamsOfOneCallerLeaveCapacityForOthersAndForWorkers(t *testing.T) {
	most := Limits{Streams: 16, InFlight: 8}.orDefaults()
	var s streams
	fill := func(class streamClass, caller, remote string) (n int) {
		for ; n < 100; n++ {
			if _, err := s.join(most, class, caller, remote); err != nil {
				break
			}
		}
		return n
	}
	if n := fill(eventStream, "key a", "192.0.2.1:1"); n != 4 {
		t.Errorf("one key listens %d times", n)
	}
	if n := fill(eventStream, "key b", "192.0.2.1:2"); n != 0 {
		t.Errorf("one address listens %d times more", n)
	}
	if n := fill(eventStream, "key c", "192.0.2.2:1"); n != 4 {
		t.Errorf("another key at another address listens %d times", n)
	}
	if n := fill(eventStream, "key d", "192.0.2.3:1"); n != 0 {
		t.Errorf("more than half of the streams listen: %d", n)
	}
	if n := fill(bulkStream, "key d", "192.0.2.3:1"); n != 4 {
		t.Errorf("%d bring jobs", n)
	}
	if n := fill(waitStream, "key w", "192.0.2.1:1"); n != 4 {
		t.Errorf("%d workers wait", n)
	}
}

func TestAClosedStreamIsNotCountedAnyMore(t *testing.T) {
	most := Limits{}.orDefaults()
	var s streams
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			leave, err := s.join(most, streamClass(i%3), fmt.Sprint("key ", i%7), fmt.Sprintf("192.0.2.%d:1", i%5))
			if err == nil {
				leave()
			}
		})
	}
	all.Wait()
	if s.count() != 0 || len(s.listeners) != 0 {
		t.Error(s.of, s.listeners)
	}
}
