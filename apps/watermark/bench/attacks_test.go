package bench

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast/apps/watermark/detect"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
)

// An attack is what is done to a copy before the mark is read, and how often the right recipient must be named.
type attack struct {
	name   string
	filter string // for the pictures
	crf    int
	still  string  // the end of the name of a single picture; empty: a clip
	before *attack // done first
	want   float64
}

var hd28 = attack{"CRF 28 + 720p", "scale=1280:720:flags=bicubic", 28, "", nil, 0.99}

var attacks = []attack{
	{"own encode", "", 0, "", nil, 1},
	{"CRF 28", "", 28, "", nil, 1},
	{"30 to 24 fps", "fps=24", 23, "", nil, 1},
	{"gain +20 %", "lutyuv=y='clip((val-16)*1.2+16,16,235)'", 23, "", nil, 1},
	{"gain -20 %", "lutyuv=y='(val-16)*0.8+16'", 23, "", nil, 1},
	{"gamma 0.8", "lutyuv=y='gammaval(0.8)'", 23, "", nil, 1},
	hd28,
	{"crop 10 % + CRF 28", "crop=iw*0.9:ih*0.9:iw*0.06:ih*0.03", 28, "", nil, 0.99},
	{"720p + crop 10 % + CRF 28", "scale=1280:720,crop=iw*0.9:ih*0.9:iw*0.06:ih*0.03", 28, "", nil, 0.99},
	{"one frame, PNG", "", 0, ".png", nil, 0.98},
	{"one frame, JPEG q80 at 720p", "scale=1280:720", 0, ".jpg", nil, 0.95},
	{"one frame of 720p + CRF 28", "", 0, ".png", &hd28, 0.9},
	{"480p + CRF 30", "scale=854:480", 30, "", nil, 0.9},
	{"crop 50 % + CRF 28", "crop=iw*0.5:ih*0.5:iw*0.2:ih*0.3", 28, "", nil, 0.9},
	{"mirrored", "hflip", 23, "", nil, 0.9},
	{"turned by 90°", "transpose=1", 23, "", nil, 0.9},
	{"stretched to 16:10", "scale=1280:800,setsar=1", 23, "", nil, 0.9},
}

// apply makes the attacked file.
func (a attack) apply(t *testing.T, folder, path string) string {
	t.Helper()
	if a.before != nil {
		path = a.before.apply(t, folder, path)
	}
	if a.filter == "" && a.crf == 0 && a.still == "" {
		return path
	}
	filter := a.filter
	if filter == "" {
		filter = "null"
	}
	out := filepath.Join(folder, "attacked"+a.still)
	args := []string{"-i", path, "-vf", filter}
	if a.still != "" {
		args = append([]string{"-ss", "1.5"}, append(args, "-frames:v", "1", "-q:v", "4")...) // q 4 of FFmpeg's JPEG is near quality 80
	} else {
		out += fmt.Sprintf("-%d.mp4", a.crf)
		args = append(args, "-an", "-c:v", "libx264", "-preset", "veryfast", "-crf", fmt.Sprint(a.crf))
	}
	run(t, "ffmpeg", append(args, out)...)
	return out
}

// read searches a file for the marks of a campaign.
func read(t *testing.T, path string, c detect.Campaign) *detect.Report {
	t.Helper()
	sum, err := media.Tools{}.ReadMarks(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	report, err := sum.Search(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
