package media_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/detect"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

func TestMain(m *testing.M) {
	if _, err := testprograms.FFmpeg.Ensure(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// make makes a file with FFmpeg.
func ffmpeg(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ffmpeg", append([]string{"-v", "error", "-nostdin", "-y"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ffmpeg %v: %v\n%s", args, err, out)
	}
}

const pattern = "testsrc2=s=640x360:r=25:d="

func key(t *testing.T) mark.Key {
	t.Helper()
	k, err := mark.NewKey(bytes.Repeat([]byte{3}, 32), "campaign")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sources are videos that a copy must keep, each with the arguments that make it.
var sources = map[string]struct {
	args   []string
	name   string
	tracks int
}{
	"without sound":         {[]string{"-f", "lavfi", "-i", pattern + "2", "-c:v", "libx264", "-pix_fmt", "yuv420p"}, "a.mp4", 0},
	"two tracks of sound":   {[]string{"-f", "lavfi", "-i", pattern + "2", "-f", "lavfi", "-i", "sine=d=2", "-f", "lavfi", "-i", "sine=f=880:d=2", "-map", "0", "-map", "1", "-map", "2", "-c:v", "libx264", "-pix_fmt", "yuv420p"}, "a.mkv", 2},
	"a variable rate":       {[]string{"-f", "lavfi", "-i", pattern + "3", "-vf", "select='lt(mod(n,10),5)+eq(mod(n,10),8)'", "-fps_mode", "vfr", "-c:v", "libx264", "-pix_fmt", "yuv420p"}, "a.mp4", 0},
	"odd sides":             {[]string{"-f", "lavfi", "-i", "testsrc2=s=321x241:r=25:d=1", "-c:v", "ffv1", "-pix_fmt", "yuv420p"}, "a.mkv", 0},
	"ten bits":              {[]string{"-f", "lavfi", "-i", pattern + "1", "-c:v", "libx264", "-pix_fmt", "yuv420p10le"}, "a.mp4", 0},
	"30000/1001 and PCM":    {[]string{"-f", "lavfi", "-i", "testsrc2=s=640x360:r=30000/1001:d=2", "-f", "lavfi", "-i", "sine=d=2", "-c:v", "libx264", "-c:a", "pcm_s16le", "-pix_fmt", "yuv420p"}, "a.mov", 1},
	"one second":            {[]string{"-f", "lavfi", "-i", pattern + "1", "-c:v", "libx264", "-pix_fmt", "yuv420p"}, "a.mp4", 0},
	"interlaced, transport": {[]string{"-f", "lavfi", "-i", pattern + "2", "-c:v", "mpeg2video", "-flags", "+ildct+ilme", "-vf", "setfield=tff", "-pix_fmt", "yuv420p"}, "a.ts", 0},
}

func TestACopyKeepsLengthAndTracksOfItsSourceAndCarriesTheMark(t *testing.T) {
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			source, target := filepath.Join(folder, s.name), filepath.Join(folder, "copy.mp4")
			ffmpeg(t, append(s.args, source)...)
			var parts []float64
			made, err := media.Tools{}.Make(t.Context(), media.Copy{
				Source: source, Target: target, Invisible: &media.Invisible{Key: key(t), Token: "token-1"}, Visible: "Zoë Ångström · 2026-11-19",
				Progress: func(part float64) { parts = append(parts, part) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(made.Audio) != s.tracks || len(parts) == 0 {
				t.Errorf("%d tracks of sound, %d reports of progress", len(made.Audio), len(parts))
			}
			if left, _ := filepath.Glob(filepath.Join(folder, ".copy-*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
			checkMark(t, target, made, name != "odd sides")
			if !strings.Contains(name, "interlaced") { // two fields become one picture there
				checkTimes(t, source, target, 0.041, s.tracks)
			}
		})
	}
}

// checkMark looks for the mark of token-1. It must be found if strong says so: small pictures have too few tiles.
func checkMark(t *testing.T, path string, made *media.Video, strong bool) {
	t.Helper()
	sum, err := media.Tools{}.ReadMarks(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	report, err := sum.Search(t.Context(), detect.Campaign{Key: key(t), Width: made.Width, Height: made.Height, Tokens: []string{"token-0", "token-1", "token-2"}})
	if err != nil {
		t.Fatal(err)
	}
	if best := report.Findings[0]; strong && (best.Token != "token-1" || !report.Found()) {
		t.Errorf("best %v, pilot %.1f", best, report.Pilot)
	}
}

// times returns the times of all packets of a track of a file, in order of their times, in seconds from the first of its pictures.
func times(t *testing.T, path, track string) (list []float64) {
	t.Helper()
	out, err := exec.Command("ffprobe", "-v", "error", "-select_streams", track, "-show_entries", "packet=pts_time", "-of", "csv=p=0", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		text := strings.Trim(line, ", \r\n")
		if text == "" {
			continue // data beside a packet
		}
		at, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %q", path, line)
		}
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}

// checkTimes checks that each picture of a copy is where it was, to one frame, and that the sounds begin and end where they did.
func checkTimes(t *testing.T, source, target string, frame float64, sounds int) {
	t.Helper()
	was, is := times(t, source, "v:0"), times(t, target, "v:0")
	if len(was) != len(is) || len(is) == 0 {
		t.Fatalf("the copy has %d pictures, the source %d", len(is), len(was))
	}
	from, to := was[0], is[0]
	for i := range was {
		if drift := math.Abs(is[i] - to - was[i] + from); drift > frame {
			t.Fatalf("picture %d of %d is %.3f s away from its place", i, len(was), drift)
		}
	}
	for n := range sounds {
		track := fmt.Sprintf("a:%d", n)
		heard, copied := times(t, source, track), times(t, target, track)
		begin, end := copied[0]-to-heard[0]+from, copied[len(copied)-1]-to-heard[len(heard)-1]+from
		if math.Abs(begin) > frame || math.Abs(end) > frame {
			t.Errorf("track %d of sound begins %.3f s and ends %.3f s away from its place", n, begin, end)
		}
	}
}

// A long video whose rate of pictures varies: in 20 minutes a drift of a thousandth would be a second at the end.
func TestALongVideoDoesNotDrift(t *testing.T) {
	folder, length := t.TempDir(), soak.Pick("seconds of the longest video that is marked", 120, 1200)
	source, target := filepath.Join(folder, "long.mkv"), filepath.Join(folder, "copy.mp4")
	ffmpeg(t, "-f", "lavfi", "-i", fmt.Sprintf("testsrc2=s=128x72:r=30000/1001:d=%d", length), "-f", "lavfi", "-i", fmt.Sprintf("sine=d=%d", length), "-vf", "select='lt(mod(n,100),3)+not(mod(n,29))'", "-fps_mode", "vfr",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", source)
	made, err := media.Tools{Preset: "ultrafast"}.Make(t.Context(), media.Copy{Source: source, Target: target, Invisible: &media.Invisible{Key: key(t), Token: "token-1"}})
	if err != nil {
		t.Fatal(err)
	}
	if made.Duration < time.Duration(length-10)*time.Second {
		t.Errorf("the copy is %v long", made.Duration)
	}
	checkTimes(t, source, target, 1/29.97, 1)
}

func TestATurnedVideoIsMarkedAsItIsShown(t *testing.T) {
	folder := t.TempDir()
	flat, turned, target := filepath.Join(folder, "flat.mp4"), filepath.Join(folder, "turned.mp4"), filepath.Join(folder, "copy.mp4")
	ffmpeg(t, "-f", "lavfi", "-i", pattern+"2", "-c:v", "libx264", "-pix_fmt", "yuv420p", flat)
	ffmpeg(t, "-i", flat, "-c", "copy", "-metadata:s:v:0", "rotate=90", turned)
	v, err := media.Tools{}.Probe(t.Context(), turned)
	if err != nil || v.Width != 360 || v.Height != 640 {
		t.Fatalf("%+v, %v", v, err)
	}
	made, err := media.Tools{}.Make(t.Context(), media.Copy{Source: turned, Target: target, Invisible: &media.Invisible{Key: key(t), Token: "token-1"}})
	if err != nil || made.Width != 360 || made.Height != 640 {
		t.Fatalf("%+v, %v", made, err)
	}
	checkMark(t, target, made, true)
}

func TestNamesInSixScriptsAreShownAndNothingInThemIsExecuted(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "a.mp4")
	ffmpeg(t, "-f", "lavfi", "-i", "color=black:s=640x360:r=10:d=1", "-c:v", "libx264", "-pix_fmt", "yuv420p", source)
	for _, name := range []string{"Zoë D'Amico", "Ольга Иванова", "Ελένη", "محمد علي", "Արամ", "ნინო", `a':x=0,drawtext=text=%{localtime}\` + "\n[in]"} {
		target := filepath.Join(folder, "copy.mp4")
		if _, err := (media.Tools{}).Make(t.Context(), media.Copy{Source: source, Target: target, Visible: name}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		plane, err := exec.Command("ffmpeg", "-v", "error", "-i", target, "-frames:v", "1", "-vf", "extractplanes=y", "-f", "rawvideo", "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		bright := 0
		for _, v := range plane {
			if v > 60 {
				bright++
			}
		}
		if bright < 20 {
			t.Errorf("%s: only %d pixels show it", name, bright)
		}
	}
	_, err := media.FontFor("\U0001F3F4\uE000", nil)
	if err == nil || code.Name(err) != code.InputText {
		t.Errorf("a text without a font gives %v", err)
	}
}

func TestWhatCannotBeMarkedIsRefusedWithACodeAndLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	write := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ffmpeg(t, "-f", "lavfi", "-i", pattern+"4", "-c:v", "libx264", "-pix_fmt", "yuv420p", path("whole.mp4"))
	whole, err := os.ReadFile(path("whole.mp4"))
	if err != nil {
		t.Fatal(err)
	}
	write("no moov.mp4", string(whole[:len(whole)/2]))
	ffmpeg(t, "-i", path("whole.mp4"), "-c", "copy", "-movflags", "+faststart", path("start.mp4"))
	start, _ := os.ReadFile(path("start.mp4"))
	write("truncated.mp4", string(start[:len(start)/2]))
	write("page.mp4", "<html>not found</html>")
	write("list.m3u8", "#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n")
	write("concat.txt", "ffconcat version 1.0\nfile /etc/passwd\n")
	write("empty.mp4", "")
	ffmpeg(t, "-f", "lavfi", "-i", pattern+"1", "-c:v", "libx264", "-pix_fmt", "yuv420p10le", "-color_trc", "arib-std-b67", "-color_primaries", "bt2020", "-colorspace", "bt2020nc", path("hlg.mp4"))
	ffmpeg(t, "-f", "lavfi", "-i", "color=red:s=32x32:d=1", "-c:v", "libx264", "-pix_fmt", "yuv420p", path("small.mp4"))
	ffmpeg(t, "-f", "lavfi", "-i", pattern+"1", "-frames:v", "1", path("picture.png"))
	ffmpeg(t, "-f", "lavfi", "-i", "sine=d=1", path("sound.mp4"))
	ffmpeg(t, "-f", "lavfi", "-i", "color=red:s=64x64:d=1,format=yuva420p", "-c:v", "ffv1", path("clear.mkv"))
	for name, want := range map[string]string{
		"no moov.mp4": code.InputDamaged, "truncated.mp4": code.InputDamaged, "page.mp4": code.InputNotVideo, "list.m3u8": code.InputNotVideo, "concat.txt": code.InputNotVideo,
		"empty.mp4": code.InputNotVideo, "hlg.mp4": code.InputHDR, "small.mp4": code.InputTooSmall, "picture.png": code.InputNotVideo, "sound.mp4": code.InputNotVideo,
		"clear.mkv": code.InputUnsupported, "missing.mp4": code.InputMissing,
	} {
		_, err := media.Tools{}.Make(t.Context(), media.Copy{Source: path(name), Target: path("copy.mp4"), Invisible: &media.Invisible{Key: key(t), Token: "x"}})
		if err == nil || code.Name(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	limited := media.Tools{Limits: media.Limits{Pixels: 640 * 300, Duration: time.Hour}}
	if _, err := limited.Probe(t.Context(), path("whole.mp4")); err == nil || code.Name(err) != code.InputTooLarge {
		t.Errorf("too many pixels: %v", err)
	}
	if _, err := (media.Tools{Limits: media.Limits{Duration: time.Second}}).Probe(t.Context(), path("whole.mp4")); err == nil || code.Name(err) != code.InputTooLong {
		t.Errorf("too long: %v", err)
	}
	for _, pattern := range []string{"copy.mp4", ".copy-*"} {
		if left, _ := filepath.Glob(path(pattern)); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

func TestFFmpegIsEndedWithTheContextByLimitsAndWhenItIsMissing(t *testing.T) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "a.mp4"), filepath.Join(folder, "copy.mp4")
	ffmpeg(t, "-f", "lavfi", "-i", pattern+"20", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", source)
	copyOf := media.Copy{Source: source, Target: target, Invisible: &media.Invisible{Key: key(t), Token: "x"}}
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := copyOf
	interrupted.Progress = func(float64) { cancel() }
	if _, err := (media.Tools{Preset: "slow"}).Make(ctx, interrupted); err == nil || ctx.Err() == nil {
		t.Errorf("cancelled: %v", err)
	}
	for want, tools := range map[string]media.Tools{
		code.FFmpegMissing: {FFmpeg: filepath.Join(folder, "missing")},
		code.FFmpegTimeout: {Preset: "slow", Limits: media.Limits{Time: 100 * time.Millisecond}},
		code.FFmpegStalled: {Preset: "slow", Limits: media.Limits{Stall: time.Millisecond}},
	} {
		if want != code.FFmpegMissing {
			tools.FFprobe = unlimitedProbe(t)
		}
		if _, err := tools.Make(t.Context(), copyOf); err == nil || code.Name(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if files, _ := os.ReadDir(folder); len(files) != 1 {
		t.Errorf("%v are left", files)
	}
}

// unlimitedProbe returns the path of ffprobe.
func unlimitedProbe(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ffprobe")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASweepDeletesWhatAKilledCopyLeft(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, ".copy-1.unfinished", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := media.Sweep(folder); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(folder); len(files) != 0 || strings.Contains(folder, "*") {
		t.Errorf("%v are left", files)
	}
}
