package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
	"github.com/holdfastdev/holdfast/store"
)

// scriptedFFmpeg copies its source instead of encoding it. A file says how it fails: every time, or for recipients whose name begins with Faulty.
const scriptedFFmpeg = `#!/bin/sh
case "$(cat %[1]s)" in
killed) exit 137 ;;
corrupt) echo "Invalid data found when processing input" >&2; exit 1 ;;
faulty) if grep -q Faulty text; then echo "Invalid data found when processing input" >&2; exit 1; fi ;;
mixed) if grep -q Faulty text; then echo "Invalid data found when processing input" >&2; exit 1; fi; exit 137 ;;
esac
for last; do :; done
cp %[2]s "$last"
`

// A stage is the service in virtual time (testing/synctest), with a scripted FFmpeg and a browser without JavaScript that calls it without a network.
type stage struct {
	*visitor
	folder   string
	end      func() // stops the engine
	closers  []func()
	campaign string // its page
}

// tell runs a scenario in virtual time.
func tell(t *testing.T, story func(s *stage)) {
	t.Helper()
	source := video(t) // made in real time
	synctest.Test(t, func(t *testing.T) {
		s := &stage{folder: t.TempDir(), end: func() {}}
		program := filepath.Join(s.folder, "ffmpeg")
		if err := os.WriteFile(program, fmt.Appendf(nil, scriptedFFmpeg, filepath.Join(s.folder, "behaviour"), source), 0o700); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"DATA_DIR": filepath.Join(s.folder, "data"), "FFMPEG": program}
		set, err := readSettings(func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		a, err := open(context.Background(), set, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		jar, _ := cookiejar.New(nil)
		s.visitor = &visitor{T: t, Client: &http.Client{Jar: jar, Transport: inProcess{a}}, base: "http://localhost", app: a}
		defer func() {
			for _, c := range s.closers {
				c()
			}
			s.end()
			if err := s.app.close(); err != nil {
				t.Error(err)
			}
		}()
		s.behaves("well")
		s.post("/sign-up", http.StatusOK, url.Values{"email": {"ada@example.org"}, "password": {"a long password"}})
		s.get("/videos")
		s.send("/videos", source, http.StatusOK, nil)
		story(s)
	})
}

// behaves says what FFmpeg does from now on.
func (s *stage) behaves(how string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, "behaviour"), []byte(how), 0o600); err != nil {
		s.Fatal(err)
	}
}

// publishes publishes a campaign for recipients with these names.
func (s *stage) publishes(downloads string, names ...string) {
	s.Helper()
	s.get("/videos")
	asset := s.find(`/campaigns/new\?video=([0-9a-zA-Z-]+)`)
	s.post("/campaigns", http.StatusOK, url.Values{"name": {"Spring"}, "video": {asset}, "visible": {"on"}, "invisible": {"on"}, "downloads": {downloads}})
	s.campaign = "/campaigns/" + s.find(`action="/campaigns/([0-9a-zA-Z-]+)/publish"`)
	s.post(s.campaign+"/recipients", http.StatusOK, url.Values{"recipients": {strings.Join(names, "\n")}})
	s.post(s.campaign+"/publish", http.StatusOK, url.Values{})
}

// works starts an engine, which runs until the scenario or end stops it.
func (s *stage) works() {
	s.Helper()
	e, err := s.app.engine()
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	s.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
}

// pass lets virtual time pass.
func (s *stage) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// becomes lets time pass until the campaign has a state, at most two hours.
func (s *stage) becomes(state campaign.State) {
	s.Helper()
	for begin := time.Now(); time.Since(begin) < 2*time.Hour; s.pass(time.Second) {
		if s.get(s.campaign); s.state() == state {
			return
		}
	}
	s.Fatalf("the campaign is never %s:\n%s", state, s.page)
}

// state returns the state of the campaign on its page.
func (s *stage) state() campaign.State {
	s.Helper()
	return campaign.State(s.find(`<h1>[^<]*<span class="badge"[^>]*>([A-Z]+)</span></h1>`))
}

// jobs returns the jobs of all copies.
func (s *stage) jobs() []holdfast.Job {
	s.Helper()
	list, _, err := s.app.jobs.Jobs(context.Background(), store.Filter{Kind: campaign.Copy{}.Kind(), Limit: 200})
	if err != nil || len(list) == 0 {
		s.Fatalf("%d jobs, %v", len(list), err)
	}
	return list
}

// letters returns the subjects of the mails on the page of notices, the newest first.
func (s *stage) letters() (subjects []string) {
	s.Helper()
	s.get("/notices")
	for part := range strings.SplitSeq(s.page, "<article") {
		if _, rest, ok := strings.Cut(part, "<h3>"); ok {
			subject, _, _ := strings.Cut(rest, "</h3>")
			subjects = append(subjects, strings.ReplaceAll(subject, "&#34;", `"`))
		}
	}
	return subjects
}

// inProcess calls a handler without a network.
type inProcess struct{ handler http.Handler }

// RoundTrip answers a request. The body of the answer arrives while the handler writes it.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Clone(r.Context())
	asked.RemoteAddr, asked.Host, asked.RequestURI = "127.0.0.1:1000", r.URL.Host, r.URL.RequestURI()
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &answer{header: http.Header{}, out: out, begun: make(chan int, 1)}
	go func() {
		defer func() {
			_ = recover() // an aborted answer ends too early
			w.WriteHeader(http.StatusOK)
			_ = out.Close()
		}()
		p.handler.ServeHTTP(w, asked)
	}()
	status := <-w.begun
	return &http.Response{StatusCode: status, Header: w.header.Clone(), Body: body, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// An answer passes an answer on as it is written.
type answer struct {
	header http.Header
	out    *io.PipeWriter
	once   sync.Once
	begun  chan int
}

func (a *answer) Header() http.Header    { return a.header }
func (a *answer) WriteHeader(status int) { a.once.Do(func() { a.begun <- status }) }
func (a *answer) Flush()                 { a.WriteHeader(http.StatusOK) }
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.out.Write(p)
}

// A listener collects the events of a stream, as lines "name data".
type listener struct {
	mu     sync.Mutex
	events []string
}

// listens opens a stream of events until the scenario ends.
func (s *stage) listens(path string) *listener {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	a, err := s.Do(r)
	if err != nil || a.StatusCode != http.StatusOK {
		s.read(a, err, http.StatusOK)
	}
	l, ended := &listener{}, make(chan struct{})
	go func() {
		defer close(ended)
		name := ""
		for lines := bufio.NewScanner(a.Body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = text
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				l.mu.Lock()
				l.events = append(l.events, name+" "+data)
				l.mu.Unlock()
			}
		}
	}()
	s.closers = append(s.closers, func() {
		cancel()
		<-ended
	})
	return l
}

// has reports whether an event with these texts has arrived.
func (l *listener) has(texts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(e, text)
		}
		if all {
			return true
		}
	}
	return false
}
