//go:build unix

package bench

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch/hostiletest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/upload"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/s3test"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

var (
	small      = flag.Int("bench.small", soak.Pick("small transfers of the benchmark", 20, 200), "so many resources of 256 KiB")
	large      = flag.Int("bench.large", 1, "so many large resources")
	megabytes  = flag.Int("bench.megabytes", soak.Pick("megabytes of a large transfer of the benchmark", 150, 1024), "size of a large resource")
	peers      = flag.Bool("bench.peers", false, "run rclone and Scrapy as well")
	rounds     = flag.Int("bench.rounds", 1, "how often each contender runs, in turns")
	atOnce     = 16
	limit      = 8 << 20 // bytes of a resource in the contest with hostile sources
	hostileFor = 45 * time.Second
)

// child is the environment variable that makes this test binary a process that transfers: the CSV file, the bucket, the folder of the spool, the most bytes.
const child = "HOLDFAST_BENCH_CHILD"

func TestMain(m *testing.M) {
	if order := os.Getenv(child); order != "" {
		if err := transferAll(strings.Split(order, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// transferAll downloads and uploads every line of a CSV file, as workers of FetchBox do, without the job engine: one attempt each.
func transferAll(args []string) error {
	most, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	to, err := blob.Open(context.Background(), args[1])
	if err != nil {
		return err
	}
	s, err := spool.Open(args[2], 100<<30)
	if err != nil {
		return err
	}
	pools, err := proxy.New(proxy.Config{Network: safehttp.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AnyPort: true}, HeaderTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	f, err := fetch.New(fetch.Config{Spool: s, Proxies: pools, Limits: fetch.Limits{Size: most}, Hosts: fetch.HostLimits{Concurrency: atOnce, Wait: time.Hour}})
	if err != nil {
		return err
	}
	u := upload.New(to)
	lines, err := readCSV(args[0])
	if err != nil {
		return err
	}
	work := make(chan []string)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for line := range work {
				name := strings.NewReplacer("/", "-", ".", "-").Replace(line[1])
				result, err := f.Fetch(context.Background(), fetch.Request{Name: name, URL: line[0]})
				if err == nil {
					err = errors.Join(u.Put(context.Background(), upload.Object{Key: line[1], File: result.File, Type: result.Type}), s.Remove(name))
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, line[1], err)
				}
			}
		})
	}
	for _, line := range lines {
		work <- line
	}
	close(work)
	all.Wait()
	return nil
}

func readCSV(name string) ([][]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return csv.NewReader(file).ReadAll()
}

func writeCSV(t *testing.T, lines [][]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "urls.csv")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(file)
	if err := errors.Join(w.WriteAll(lines), file.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// A contender transfers the URLs of a CSV file into a bucket.
type contender struct {
	name    string
	command func(t *testing.T, urls, place string, most int64) *exec.Cmd
}

func contenders(t *testing.T) []contender {
	t.Helper()
	all := []contender{{"FetchBox", func(t *testing.T, urls, place string, most int64) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+strings.Join([]string{urls, place, t.TempDir(), strconv.FormatInt(most, 10)}, "\n"))
		return cmd
	}}}
	if !*peers {
		return all
	}
	rclone := buildRclone(t)
	if _, err := testprograms.Scrapy.Ensure(); err != nil {
		t.Fatal(err)
	}
	if exec.Command("/usr/bin/python3", "-c", "import botocore").Run() != nil { // what Scrapy needs for S3
		if err := testprograms.Install("python3-botocore"); err != nil {
			t.Fatal(err)
		}
	}
	return append(all, contender{"rclone", func(_ *testing.T, urls, place string, _ int64) *exec.Cmd {
		cmd := exec.Command(rclone, "copyurl", "--urls", urls, ":s3:"+strings.TrimPrefix(place, "s3://"), "--transfers", strconv.Itoa(atOnce), "--checkers", strconv.Itoa(atOnce),
			"--low-level-retries", "1", "--retries", "1", "--contimeout", "10s", "--timeout", "10s", "--s3-no-check-bucket", "--ignore-times")
		cmd.Env = append(os.Environ(), "RCLONE_S3_PROVIDER=Other", "RCLONE_S3_ENDPOINT="+os.Getenv("S3_ENDPOINT"), "RCLONE_S3_ENV_AUTH=true", "RCLONE_CONFIG="+os.DevNull)
		return cmd
	}}, contender{"Scrapy", func(_ *testing.T, urls, place string, most int64) *exec.Cmd {
		return exec.Command("/usr/bin/python3", "peer_scrapy.py", urls, strings.TrimPrefix(place, "s3://"), strconv.FormatInt(most, 10), "30")
	}})
}

// buildRclone builds rclone from its module, once.
func buildRclone(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(cache, "holdfast-tools", "rclone-v1.75.1")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	cmd := exec.Command("go", "build", "-C", "../../../tools/rclone", "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build rclone: %v\n%s", err, out)
	}
	return binary
}

// A run is what a contender did.
type run struct {
	took   time.Duration
	memory int64 // the most resident bytes
	err    error
}

// measure runs a contender, and kills it after a time.
func measure(t *testing.T, c contender, cmd *exec.Cmd, within time.Duration) run {
	t.Helper()
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	end := time.AfterFunc(within, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	end.Stop()
	r := run{took: time.Since(began), err: err}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.memory = usage.Maxrss
		if runtime.GOOS == "linux" {
			r.memory <<= 10
		}
	}
	if err != nil {
		r.err = fmt.Errorf("%w: %.2000s", err, out)
	}
	return r
}

// source serves /SIZE/NUMBER: so many bytes, which differ from number to number.
func source(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.ParseInt(strings.Split(r.URL.Path, "/")[1], 10, 64)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		block := []byte(strings.Repeat(r.URL.Path+"\n", 16<<10))
		for left := size; left > 0; left -= int64(len(block)) {
			if _, err := w.Write(block[:min(left, int64(len(block)))]); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTransfersIntoARealS3Server(t *testing.T) {
	at, server := source(t), s3test.Start(t)
	for _, contest := range []struct {
		name  string
		count int
		size  int64
	}{{"small", *small, 256 << 10}, {"large", *large, int64(*megabytes) << 20}} {
		var lines [][]string
		for n := range contest.count {
			lines = append(lines, []string{fmt.Sprintf("%s/%d/%d", at, contest.size, n), fmt.Sprintf("%s-%d", contest.name, n)})
		}
		urls := writeCSV(t, lines)
		for range *rounds {
			for _, c := range contenders(t) {
				place := server.Use(t)
				r := measure(t, c, c.command(t, urls, place, contest.size+1), time.Hour)
				stored, wrong := count(t, server, place, contest.size)
				megabytes := float64(contest.size) * float64(contest.count) / (1 << 20)
				t.Logf("%-6s %4d x %7d KiB  %-8s %8.2f s  %7.1f files/s  %7.1f MiB/s  %5d MiB resident  %d stored, %d wrong  %v", contest.name, contest.count, contest.size>>10, c.name,
					r.took.Seconds(), float64(contest.count)/r.took.Seconds(), megabytes/r.took.Seconds(), r.memory>>20, stored, wrong, r.err)
				if c.name == "FetchBox" && (r.err != nil || stored != contest.count || wrong != 0 || r.memory > 160<<20) {
					t.Errorf("FetchBox: %d stored, %d wrong, %d MiB resident, %v", stored, wrong, r.memory>>20, r.err)
				}
				_ = os.RemoveAll(filepath.Join(server.Dir, strings.TrimPrefix(place, "s3://")))
			}
		}
	}
}

// count counts the objects of a bucket, and those that do not have a size.
func count(t *testing.T, server *s3test.Server, place string, size int64) (stored, wrong int) {
	t.Helper()
	for _, info := range objects(t, server, place) {
		stored++
		if info.Size() != size {
			wrong++
		}
	}
	return stored, wrong
}

// objects returns the files of a bucket, by their names.
func objects(t *testing.T, server *s3test.Server, place string) map[string]os.FileInfo {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(server.Dir, strings.TrimPrefix(place, "s3://")))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]os.FileInfo{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			found[e.Name()] = info
		}
	}
	return found
}

// Sources that break the rules are transferred without any expectation. An object of a source that must fail is a wrong file.
func TestHostileSourcesLeaveNoWrongFiles(t *testing.T) {
	server := s3test.Start(t)
	sources := map[string]hostiletest.Source{}
	var lines [][]string
	for n, s := range hostiletest.Sources() {
		if s.Code != "" && s.Expect != (fetch.Expect{}) {
			continue // without the expectation it is an ordinary resource
		}
		key := fmt.Sprintf("source-%d", n)
		sources[key] = s
		lines = append(lines, []string{hostiletest.Start(t, s.Answer) + "/file", key})
	}
	urls := writeCSV(t, lines)
	for _, c := range contenders(t) {
		place := server.Use(t)
		r := measure(t, c, c.command(t, urls, place, int64(limit)), hostileFor)
		stored := objects(t, server, place)
		var wrong, missing []string
		for key, s := range sources {
			info, exists := stored[key]
			switch {
			case (s.Code == code.DownloadTooLarge || s.Name == "a header of 4 MiB") && c.name != "FetchBox": // the peer has no such limit
			case s.Code != "" && exists:
				wrong = append(wrong, s.Name)
			case s.Code == "" && !exists:
				missing = append(missing, s.Name)
			case s.Code == "" && info.Size() != int64(len(s.Body)):
				wrong = append(wrong, s.Name)
			}
		}
		t.Logf("%-8s %d sources, %.0f s: %d wrong files %q, %d right ones missing %q", c.name, len(sources), r.took.Seconds(), len(wrong), wrong, len(missing), missing)
		if c.name == "FetchBox" && (len(wrong) > 0 || len(missing) > 0) {
			t.Errorf("%v", r.err)
		}
	}
}
