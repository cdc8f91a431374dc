//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/processtest"
	"github.com/holdfastdev/holdfast/internal/soak"
)

func init() { processtest.Main(main) }

// faultyFFmpeg fails for recipients whose name begins with Faulty, as FFmpeg does for a damaged source, as long as a file exists.
const faultyFFmpeg = `#!/bin/sh
if [ -e "%s" ] && grep -q Faulty text 2>/dev/null; then
	echo "Invalid data found when processing input" >&2
	exit 1
fi
exec ffmpeg "$@"
`

// Victims are processes of the service, one after the other, on the same folder.
type victims struct {
	*visitor
	env []string
	p   *processtest.Process
}

func (v *victims) start() {
	v.p = processtest.Launch(v.T, v.env, "The page is at ")
	v.base = v.p.Says("The page is at ")
}

// W11: a campaign whose workers are killed again and again, and of whose copies a tenth fails, ends in the right state; each notice is there once, and no half copy.
func TestACampaignWhoseProcessesAreKilledEndsInTheRightStateWithEachNoticeOnce(t *testing.T) {
	recipients, kills := soak.Pick("recipients of a campaign whose processes are killed", 10, 50), soak.Pick("kills of the processes of a campaign", 4, 20)
	data := t.TempDir()
	fault, program := filepath.Join(data, "fault"), filepath.Join(t.TempDir(), "ffmpeg")
	for path, text := range map[string]string{fault: "", program: fmt.Sprintf(faultyFFmpeg, fault)} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	jar, _ := cookiejar.New(nil)
	v := &victims{visitor: &visitor{T: t, Client: &http.Client{Jar: jar}}, env: []string{"DATA_DIR=" + data, "ADDR=127.0.0.1:0", "FFMPEG=" + program, "WORKER_LEASE_TTL_SEC=2", "WORKERS=2"}}
	v.start()
	page, faulty := v.campaign(recipients)
	for range kills {
		<-time.After(time.Duration(100+rand.IntN(1500)) * time.Millisecond)
		v.p.Kill()
		v.start()
	}
	v.until(page, fmt.Sprintf("Warning: %d watermarking job(s) failed permanently.", faulty))
	v.checkCopies(data, recipients-faulty)
	v.checkLetters(faulty)

	if err := os.Remove(fault); err != nil {
		t.Fatal(err)
	}
	v.get(page)
	for _, m := range regexp.MustCompile(`action="(/campaigns/[^"]+/retry)"`).FindAllStringSubmatch(v.page, -1) {
		v.post(m[1], http.StatusOK, url.Values{})
		if !strings.Contains(v.page, "Retry queued for Faulty") {
			t.Errorf("the page after a retry says nothing:\n%s", v.page)
		}
	}
	v.until(page, `data-state="ready"`)
	v.checkCopies(data, recipients)
	v.checkLetters(faulty)
}

// campaign publishes a campaign of which every tenth recipient's copy fails.
func (v *victims) campaign(recipients int) (page string, faulty int) {
	v.Helper()
	v.post("/sign-up", http.StatusOK, url.Values{"email": {"ada@example.org"}, "password": {"a long password"}})
	v.get("/videos")
	v.send("/videos", video(v.T), http.StatusOK, nil)
	asset := v.find(`/campaigns/new\?video=([0-9a-zA-Z-]+)`)
	v.get("/campaigns/new")
	v.post("/campaigns", http.StatusOK, url.Values{"name": {"Spring"}, "video": {asset}, "visible": {"on"}, "invisible": {"on"}})
	page = "/campaigns/" + v.find(`action="/campaigns/([0-9a-zA-Z-]+)/publish"`)
	var list strings.Builder
	for n := range recipients {
		name := "Recipient"
		if n%10 == 5 {
			name = "Faulty"
			faulty++
		}
		fmt.Fprintf(&list, "%s %d\n", name, n)
	}
	v.post(page+"/recipients", http.StatusOK, url.Values{"recipients": {list.String()}})
	v.post(page+"/publish", http.StatusOK, url.Values{})
	return page, faulty
}

// checkCopies checks that there are so many copies, each complete.
func (v *victims) checkCopies(data string, want int) {
	v.Helper()
	copies, err := filepath.Glob(filepath.Join(data, "copies", "*.mp4"))
	if err != nil || len(copies) != want {
		v.Errorf("%d copies, want %d; %v", len(copies), want, err)
	}
	for _, path := range copies {
		out, err := exec.Command("ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", path).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "30" {
			v.Errorf("%s: %s frames, %v", path, out, err)
		}
	}
}

// checkLetters waits until there is one mail about the outcome, and each copy that failed is named in one mail: as many failures as there are at a time share one.
func (v *victims) checkLetters(faulty int) {
	v.Helper()
	v.until("/notices", "is ready in part")
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for limit := time.After(2 * time.Minute); ; {
		v.get("/notices")
		outcomes, named := strings.Count(v.page, "is ready in part</h3>"), regexp.MustCompile(`(?m)Faulty \d+: `).FindAllString(v.page, -1)
		slices.Sort(named)
		if distinct := len(slices.Compact(slices.Clone(named))); outcomes > 1 || distinct < len(named) {
			v.Fatalf("a notice is there twice:\n%s", v.page)
		} else if outcomes == 1 && distinct == faulty {
			return
		}
		select {
		case <-every.C:
		case <-limit:
			v.Fatalf("%d of %d failures are in mails:\n%s", len(named), faulty, v.page)
		}
	}
}
