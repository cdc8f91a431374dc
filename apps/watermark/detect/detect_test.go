package detect_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/detect"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

const width, height = 960, 540

func campaign(t *testing.T, recipients int) detect.Campaign {
	t.Helper()
	key, err := mark.NewKey(bytes.Repeat([]byte{7}, 32), "spring")
	if err != nil {
		t.Fatal(err)
	}
	c := detect.Campaign{Key: key, Width: width, Height: height}
	for n := range recipients {
		c.Tokens = append(c.Tokens, fmt.Sprintf("token-%d", n))
	}
	return c
}

// scenery returns the brightness of a picture with edges, slopes and noise that moves.
func scenery(frame int) []byte {
	random := rand.New(rand.NewPCG(5, uint64(frame)))
	picture := make([]byte, width*height)
	for y := range height {
		for x := range width {
			v := 120 + 50*math.Sin(float64(x+2*frame)/37)*math.Cos(float64(y)/23)
			if (x/90+(y+frame)/70)%3 == 0 {
				v -= 40
			}
			picture[y*width+x] = byte(min(max(v+2*random.NormFloat64(), 16), 235))
		}
	}
	return picture
}

// marked adds the marks of recipients to a picture, as the mean of their copies.
func marked(t *testing.T, c detect.Campaign, picture []byte, at time.Duration, tokens ...string) []byte {
	t.Helper()
	sum := make([]int, len(picture))
	for _, token := range tokens {
		p, err := mark.NewPattern(c.Key, token, c.Width, c.Height)
		if err != nil {
			t.Fatal(err)
		}
		var pictures bytes.Buffer
		if err := p.Write(&pictures, mark.Phases); err != nil {
			t.Fatal(err)
		}
		begin := int(at/mark.Phase) % mark.Phases * p.FrameSize()
		for i, v := range pictures.Bytes()[begin : begin+len(picture)] {
			sum[i] += int(v) - 128
		}
	}
	out := make([]byte, len(picture))
	random := rand.New(rand.NewPCG(6, uint64(at)))
	for i, v := range picture {
		out[i] = byte(min(max(math.Floor(float64(v)+float64(sum[i])/float64(max(1, len(tokens)))+random.Float64()), 0), 255))
	}
	return out
}

func search(t *testing.T, c detect.Campaign, w, h int, pictures [][]byte) *detect.Report {
	t.Helper()
	sum, err := detect.NewSum(w, h, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range pictures {
		sum.Add(p, time.Duration(i)*time.Second/10)
	}
	report, err := sum.Search(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func clip(t *testing.T, c detect.Campaign, frames int, from time.Duration, tokens ...string) (pictures [][]byte) {
	t.Helper()
	for n := range frames {
		pictures = append(pictures, marked(t, c, scenery(n), from+time.Duration(n)*time.Second/10, tokens...))
	}
	return pictures
}

func TestASingleMarkedPictureNamesItsRecipient(t *testing.T) {
	c := campaign(t, 200)
	report := search(t, c, width, height, clip(t, c, 1, 0, "token-17"))
	named := report.Named()
	if len(named) != 1 || named[0].Token != "token-17" {
		t.Fatalf("named %v; the best are %v, pilot %.1f", named, report.Findings[:3], report.Pilot)
	}
	t.Logf("z %.1f, pilot %.1f, chance %.1g, next %.1f", named[0].Z, report.Pilot, named[0].Chance, report.Findings[1].Z)
}

func TestEveryOrientationIsRecognised(t *testing.T) {
	c := campaign(t, 20)
	upright := clip(t, c, 1, 0, "token-3")[0]
	turns := map[string]func(x, y int) (int, int){
		"upright": func(x, y int) (int, int) { return x, y }, "mirrored": func(x, y int) (int, int) { return width - 1 - x, y },
		"upside down and mirrored": func(x, y int) (int, int) { return x, height - 1 - y }, "upside down": func(x, y int) (int, int) { return width - 1 - x, height - 1 - y },
		"turned by 90°": func(x, y int) (int, int) { return height - 1 - y, x }, "turned by 270°": func(x, y int) (int, int) { return y, width - 1 - x },
		"turned by 90° and mirrored": func(x, y int) (int, int) { return y, x },
	}
	for name, to := range turns {
		w, h := width, height
		if x, y := to(0, 0); max(x, y) == height-1 && x+y == height-1 || name == "turned by 270°" || name == "turned by 90° and mirrored" {
			if name != "upright" && name != "mirrored" && name != "upside down and mirrored" && name != "upside down" {
				w, h = height, width
			}
		}
		turned := make([]byte, w*h)
		for y := range height {
			for x := range width {
				nx, ny := to(x, y)
				turned[ny*w+nx] = upright[y*width+x]
			}
		}
		report := search(t, c, w, h, [][]byte{turned})
		if !report.Found() || report.Named()[0].Token != "token-3" || report.Orientation.String() != name {
			t.Errorf("%s: best %v, orientation %s", name, report.Findings[0], report.Orientation)
		}
	}
}

func TestAnUnmarkedPictureAndAnotherCampaignNameNoRecipient(t *testing.T) {
	c := campaign(t, 300)
	for name, pictures := range map[string][][]byte{"unmarked": {scenery(0)}, "another key": clip(t, c, 1, 0, "token-1")} {
		other := c
		other.Key, _ = mark.NewKey(bytes.Repeat([]byte{8}, 32), "spring")
		report := search(t, other, width, height, pictures)
		if report.Found() {
			t.Errorf("%s names %v", name, report.Named())
		}
		t.Logf("%s: best z %.1f of %d correlations", name, report.Findings[0].Z, report.Correlations)
	}
}

func TestAllRecipientsOfMixedCopiesAreNamedInAClipThatBeginsAnywhere(t *testing.T) {
	c := campaign(t, 100)
	report := search(t, c, width, height, clip(t, c, 30, 14*time.Second, "token-5", "token-50"))
	named := map[string]bool{}
	for _, f := range report.Named() {
		named[f.Token] = true
	}
	if len(named) != 2 || !named["token-5"] || !named["token-50"] {
		t.Errorf("named %v", report.Named())
	}
}
