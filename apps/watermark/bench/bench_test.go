package bench

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/detect"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
)

var (
	benchRun   = flag.Bool("bench.run", false, "run the benchmark")
	recipients = flag.Int("bench.recipients", 10, "recipients whose copies are attacked, for each clip")
	candidates = flag.Int("bench.candidates", 1000, "recipients of the campaign")
	length     = flag.Int("bench.seconds", 10, "length of the clips")
	only       = flag.String("bench.clips", "", "a regular expression: the clips to use")
	rounds     = flag.Int("bench.rounds", 3, "rounds of the table of times")
	keep       = flag.String("bench.folder", "", "keep the clips in this folder and use those that are there")
)

func workFolder(t *testing.T) string {
	if *keep == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(*keep, 0o755); err != nil {
		t.Fatal(err)
	}
	return *keep
}

func campaign(t *testing.T, name string) detect.Campaign {
	t.Helper()
	key, err := mark.NewKey(bytes.Repeat([]byte{9}, 32), name)
	if err != nil {
		t.Fatal(err)
	}
	c := detect.Campaign{Key: key, Width: 1920, Height: 1080}
	for n := range *candidates {
		c.Tokens = append(c.Tokens, fmt.Sprintf("%s-%d", name, n))
	}
	return c
}

// chosen returns the clips of the run.
func chosen(t *testing.T) (list []clip) {
	t.Helper()
	pattern := regexp.MustCompile(*only)
	for _, c := range clips {
		if pattern.MatchString(c.name) {
			list = append(list, c)
		}
	}
	return list
}

func marked(t *testing.T, source, target string, c detect.Campaign, token string) string {
	t.Helper()
	if _, err := (media.Tools{}).Make(t.Context(), media.Copy{Source: source, Target: target, Invisible: &media.Invisible{Key: c.Key, Token: token}}); err != nil {
		t.Fatal(err)
	}
	return target
}

// A line collects the results of one attack.
type line struct {
	tried, named int
	z            []float64
	wrong        float64
}

func TestRobustness(t *testing.T) {
	if !*benchRun {
		return
	}
	folder := workFolder(t)
	lines := make([]line, len(attacks))
	for _, cl := range chosen(t) {
		source := cl.make(t, folder, *length)
		c := campaign(t, cl.name)
		for n := range *recipients {
			token := c.Tokens[n*(*candidates / *recipients)]
			path := marked(t, source, filepath.Join(folder, "copy.mp4"), c, token)
			for i, a := range attacks {
				begin := time.Now()
				report := read(t, a.apply(t, folder, path), c)
				lines[i].add(report, token)
				t.Logf("%-18s %-28s z %5.1f pilot %5.1f wrong %4.1f found %-5v places %3d scale %.3f %.3f %s, %.1f s", cl.name, a.name, zOf(report, token), report.Pilot, wrongest(report, token),
					isNamed(report, token), report.Places, report.ScaleX, report.ScaleY, report.Orientation, time.Since(begin).Seconds())
			}
		}
	}
	fmt.Printf("\n| after | copies | identified | worst z | median z | best innocent |\n|---|---|---|---|---|---|\n")
	for i, a := range attacks {
		l := lines[i]
		slices.Sort(l.z)
		fmt.Printf("| %s | %d | %.0f %% | %.1f | %.1f | %.1f |\n", a.name, l.tried, 100*float64(l.named)/float64(l.tried), l.z[0], l.z[len(l.z)/2], l.wrong)
		if float64(l.named) < a.want*float64(l.tried) {
			t.Errorf("%s: %d of %d identified, the target is %.0f %%", a.name, l.named, l.tried, 100*a.want)
		}
	}
}

func (l *line) add(r *detect.Report, token string) {
	l.tried++
	if isNamed(r, token) {
		l.named++
	}
	l.z = append(l.z, zOf(r, token))
	l.wrong = max(l.wrong, wrongest(r, token))
}

// isNamed reports whether the right recipient is the best and named.
func isNamed(r *detect.Report, token string) bool { return r.Found() && r.Findings[0].Token == token }

func zOf(r *detect.Report, token string) float64 {
	for _, f := range r.Findings {
		if f.Token == token {
			return f.Z
		}
	}
	return 0
}

func wrongest(r *detect.Report, tokens ...string) float64 {
	for _, f := range r.Findings {
		if !slices.Contains(tokens, f.Token) {
			return f.Z
		}
	}
	return 0
}

// Copies of several recipients are mixed: the mean of their pictures.
func TestMixedCopies(t *testing.T) {
	if !*benchRun {
		return
	}
	folder := workFolder(t)
	fmt.Printf("\n| clip | copies mixed | named | z | best innocent |\n|---|---|---|---|---|\n")
	for _, cl := range chosen(t) {
		source := cl.make(t, folder, *length)
		c := campaign(t, cl.name)
		var paths []string
		for n := range 5 {
			paths = append(paths, marked(t, source, filepath.Join(folder, fmt.Sprintf("mix-%d.mp4", n)), c, c.Tokens[n]))
		}
		for _, n := range []int{2, 3, 5} {
			var args []string
			for _, path := range paths[:n] {
				args = append(args, "-i", path)
			}
			out := filepath.Join(folder, "mixed.mp4")
			run(t, "ffmpeg", append(args, "-filter_complex", fmt.Sprintf("mix=inputs=%d", n), "-c:v", "libx264", "-preset", "veryfast", "-crf", "23", out)...)
			report := read(t, out, c)
			guilty := 0
			var zs []string
			for _, f := range report.Named() {
				if slices.Contains(c.Tokens[:n], f.Token) {
					guilty++
				} else {
					t.Errorf("%s: the innocent %s is named with z %.1f", cl.name, f.Token, f.Z)
				}
				zs = append(zs, fmt.Sprintf("%.1f", f.Z))
			}
			fmt.Printf("| %s | %d | %d | %s | %.1f |\n", cl.name, n, guilty, strings.Join(zs, " "), wrongest(report, c.Tokens[:n]...))
			if want := min(n, 3); guilty < want {
				t.Errorf("%s: %d of %d are named", cl.name, guilty, n)
			}
		}
	}
}

var ssimLine = regexp.MustCompile(`SSIM Y:([0-9.]+)`)
var psnrLine = regexp.MustCompile(`PSNR y:([0-9.inf]+)`)

// Quality before encoding, and sizes and times in comparison with FFmpeg alone.
func TestQualitySizesAndTimes(t *testing.T) {
	if !*benchRun {
		return
	}
	folder := workFolder(t)
	var sizes, walls, both []float64
	fmt.Printf("\n| clip | PSNR | SSIM | size | +Mb/s | wall of invisible | of both |\n|---|---|---|---|---|---|---|\n")
	for _, cl := range chosen(t) {
		source := cl.make(t, folder, *length)
		c := campaign(t, cl.name)
		psnr, ssim := quality(t, folder, source, c)
		plain, invisible, visible := filepath.Join(folder, "plain.mp4"), filepath.Join(folder, "copy.mp4"), filepath.Join(folder, "both.mp4")
		var ratios, ratiosBoth []float64
		for range *rounds {
			alone := timed(func() {
				run(t, "ffmpeg", "-i", source, "-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-pix_fmt", "yuv420p", "-movflags", "+faststart", plain)
			})
			ratios = append(ratios, timed(func() { marked(t, source, invisible, c, c.Tokens[0]) })/alone)
			ratiosBoth = append(ratiosBoth, timed(func() {
				if _, err := (media.Tools{}).Make(t.Context(), media.Copy{Source: source, Target: visible, Visible: "Recipient 17 · 2026-11-19 13:00", Invisible: &media.Invisible{Key: c.Key, Token: "x"}}); err != nil {
					t.Fatal(err)
				}
			})/alone)
		}
		size, base := sizeOf(t, invisible), sizeOf(t, plain)
		extra := (size - base) * 8 / 1e6 / float64(*length)
		sizes, walls, both = append(sizes, size/base), append(walls, median(ratios)), append(both, median(ratiosBoth))
		fmt.Printf("| %s | %.2f | %.4f | %.2f | %.2f | %.2f | %.2f |\n", cl.name, psnr, ssim, size/base, extra, median(ratios), median(ratiosBoth))
		if psnr < 47.5 || ssim < 0.99 {
			t.Errorf("%s: PSNR %.2f, SSIM %.4f", cl.name, psnr, ssim)
		}
		if size/base > 1.15 && extra > 1.2 {
			t.Errorf("%s: the copy has %.2f times the size", cl.name, size/base)
		}
	}
	fmt.Printf("\nsize: median %.3f, most %.3f; wall of invisible: median %.3f, most %.3f; of both: median %.3f, most %.3f\n", median(sizes), slices.Max(sizes), median(walls), slices.Max(walls), median(both), slices.Max(both))
}

// quality compares the marked pictures with the source before they are encoded.
func quality(t *testing.T, folder, source string, c detect.Campaign) (psnr, ssim float64) {
	t.Helper()
	p, err := mark.NewPattern(c.Key, c.Tokens[0], 1920, 1080)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(folder, "pattern.yuv"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(file, mark.Phases); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	graph := "[0:v]split=3[a][b][c];[a][1:v]blend=c0_mode=grainmerge:c1_mode=normal:c2_mode=normal:shortest=1,split[m][n];[m][b]psnr[x];[n][c]ssim[y]"
	out, err := exec.Command("ffmpeg", "-nostdin", "-t", "2", "-i", source, "-stream_loop", "-1", "-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", "1920x1080", "-framerate", "1/8",
		"-i", file.Name(), "-filter_complex", graph, "-map", "[x]", "-f", "null", "-", "-map", "[y]", "-f", "null", "-").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	number := func(pattern *regexp.Regexp) float64 {
		m := pattern.FindSubmatch(out)
		if m == nil {
			t.Fatalf("no figures in:\n%s", out)
		}
		v, _ := strconv.ParseFloat(string(m[1]), 64)
		return v
	}
	return number(psnrLine), number(ssimLine)
}

func timed(do func()) float64 {
	begin := time.Now()
	do()
	return time.Since(begin).Seconds()
}

func sizeOf(t *testing.T, path string) float64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size())
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
