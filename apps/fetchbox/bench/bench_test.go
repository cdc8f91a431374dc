//go:build unix

package bench

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch/hostiletest"
	"github.com/holdfastdev/holdfast/apps/internal/s3test"
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

// A contender transfers the URLs of lines, each with its key, into a bucket, in at most a time.
type contender struct {
	name     string
	transfer func(t *testing.T, lines [][]string, place string, most int64, within time.Duration) run
}

func contenders(t *testing.T) []contender {
	t.Helper()
	all := []contender{{"FetchBox", service(build(t, "..", filepath.Join(t.TempDir(), "fetchbox")))}}
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
	return append(all, contender{"rclone", program(func(urls, place string, most int64) *exec.Cmd {
		timeout := "10s"
		if most > 64<<20 {
			timeout = "5m" // its default: a storage server needs long to put the parts of a large object together
		}
		cmd := exec.Command(rclone, "copyurl", "--urls", urls, ":s3:"+strings.TrimPrefix(place, "s3://"), "--transfers", strconv.Itoa(atOnce), "--checkers", strconv.Itoa(atOnce),
			"--low-level-retries", "1", "--retries", "1", "--contimeout", "10s", "--timeout", timeout, "--s3-no-check-bucket", "--ignore-times")
		cmd.Env = append(os.Environ(), "RCLONE_S3_PROVIDER=Other", "RCLONE_S3_ENDPOINT="+os.Getenv("S3_ENDPOINT"), "RCLONE_S3_ENV_AUTH=true", "RCLONE_CONFIG="+os.DevNull)
		return cmd
	})}, contender{"Scrapy", program(func(urls, place string, most int64) *exec.Cmd {
		return exec.Command("/usr/bin/python3", "peer_scrapy.py", urls, strings.TrimPrefix(place, "s3://"), strconv.FormatInt(most, 10), "30")
	})})
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
	return build(t, "../../../tools/rclone", binary)
}

func build(t *testing.T, folder, binary string) string {
	t.Helper()
	cmd := exec.Command("go", "build", "-C", folder, "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", filepath.Base(binary), err, out)
	}
	return binary
}

// A run is what a contender did.
type run struct {
	took   time.Duration
	memory int64 // the most resident bytes
	err    error
}

// program is a contender that is one command: its time is that of its process.
func program(command func(urls, place string, most int64) *exec.Cmd) func(*testing.T, [][]string, string, int64, time.Duration) run {
	return func(t *testing.T, lines [][]string, place string, most int64, within time.Duration) run {
		t.Helper()
		out := &strings.Builder{}
		cmd := command(writeCSV(t, lines), place, most)
		cmd.Stdout, cmd.Stderr = out, out
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end := time.AfterFunc(within, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		end.Stop()
		r := run{took: time.Since(began), memory: resident(cmd.ProcessState)}
		if err != nil {
			r.err = fmt.Errorf("%w: %.2000s", err, out)
		}
		return r
	}
}

// resident returns the most resident bytes of a process that has ended.
func resident(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "linux" {
		return usage.Maxrss << 10
	}
	return usage.Maxrss
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

// scrapyMemory is how many bytes of bodies Scrapy may hold: more could be the end of the machine.
const scrapyMemory = 4 << 30

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
		for range *rounds {
			if contest.count == 0 {
				break
			}
			for _, c := range contenders(t) {
				if c.name == "Scrapy" && contest.size*int64(atOnce) > scrapyMemory {
					t.Logf("%-6s Scrapy is left out: it holds whole bodies in memory, here up to %d GiB", contest.name, contest.size*int64(atOnce)>>30)
					continue
				}
				place := server.Use(t)
				r := c.transfer(t, lines, place, contest.size+1, time.Hour)
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

// objects returns the files of a bucket, by the last part of their names.
func objects(t *testing.T, server *s3test.Server, place string) map[string]os.FileInfo {
	t.Helper()
	found := map[string]os.FileInfo{}
	root := filepath.Join(server.Dir, strings.TrimPrefix(place, "s3://"))
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && e.IsDir(): // what the server has for itself
			return filepath.SkipDir
		case !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "."):
			return nil
		}
		info, err := e.Info()
		found[e.Name()] = info
		return err
	})
	if err != nil {
		t.Fatal(err)
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
	for _, c := range contenders(t) {
		place := server.Use(t)
		r := c.transfer(t, lines, place, int64(limit), hostileFor)
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
