package fetch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// victim is the environment variable that makes this test binary a process that downloads from an address into a spool until it is killed: address, then folder.
const victim = "HOLDFAST_FETCH_VICTIM"

func TestMain(m *testing.M) {
	if address, dir, ok := strings.Cut(os.Getenv(victim), " "); ok {
		fmt.Println("ended", downloadForever(address, dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const resources = 40

// downloadForever downloads each resource that is not in the spool yet, four at a time, and prints its number when it is.
func downloadForever(address, dir string) error {
	s, err := spool.Open(dir, 1<<30)
	if err != nil {
		return err
	}
	pools, err := proxy.New(proxy.Config{Network: safehttp.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AnyPort: true}})
	if err != nil {
		return err
	}
	f, err := fetch.New(fetch.Config{Spool: s, Proxies: pools})
	if err != nil {
		return err
	}
	fmt.Println("began")
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := worker; n < resources; n += 4 {
				name := fmt.Sprintf("job-%d", n)
				if _, err := f.Adopt(name); err == nil {
					continue
				}
				if _, err := f.Fetch(context.Background(), fetch.Request{Name: name, URL: address + "/" + strconv.Itoa(n)}); err != nil {
					fmt.Println("failed", err)
				}
				fmt.Println("done", n)
			}
		})
	}
	all.Wait()
	select {}
}

// resource returns the content of a resource, some of them larger than a buffer.
func resource(n int) string { return strings.Repeat(strconv.Itoa(n)+" ", 1000*(n+1)) }

// A process is killed again and again while it downloads. The next one adopts what was complete, and nothing else: no resource that was complete is downloaded again, no
// file is cut, and no space is lost.
func TestKilledProcessesLoseNoCompleteDownloadAndLeaveNoHalfOne(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		mu.Lock()
		asked[r.URL.Path]++
		mu.Unlock()
		text := resource(n)
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		<-time.After(5 * time.Millisecond)
		_, _ = io.WriteString(w, text[len(text)/2:])
	})
	random := rand.New(rand.NewPCG(3, 4))
	for range soak.Pick("kills during downloads", 5, 100) {
		dir := t.TempDir()
		done := map[int]bool{}
		for range 3 {
			for n := range runVictim(t, address, dir, time.Duration(random.IntN(150))*time.Millisecond) {
				if done[n] {
					t.Errorf("resource %d was complete and was downloaded again", n)
				}
				done[n] = true
			}
		}
		s, err := spool.Open(dir, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		var bytes int64
		files := 0
		for n := range resources {
			file, err := s.Find(fmt.Sprintf("job-%d", n))
			if err != nil && done[n] {
				t.Errorf("resource %d was complete and is lost: %v", n, err)
			}
			if err != nil {
				continue
			}
			files++
			bytes += file.Size
			if text, err := os.ReadFile(file.Path); err != nil || string(text) != resource(n) {
				t.Errorf("resource %d has %d other bytes (%v)", n, len(text), err)
			}
		}
		entries, err := os.ReadDir(dir)
		if u := s.Usage(); err != nil || u.Bytes != bytes || u.Files != files || len(entries) != 2*files+1 {
			t.Errorf("%+v for %d files with %d bytes, %d entries", u, files, bytes, len(entries))
		}
		_ = s.Close()
	}
}

// runVictim runs a process that downloads, kills it after a time, and returns the resources that it completed.
func runVictim(t *testing.T, address, dir string, after time.Duration) map[int]bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+address+" "+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	completed := map[int]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		switch {
		case what == "began":
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		case what == "done" && err == nil:
			completed[n] = true
		default:
			t.Errorf("the process said %q", lines.Text())
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	return completed
}
