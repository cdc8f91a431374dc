package bench

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A clip is one of the videos: a name, and how FFmpeg makes it from generators or from a picture that this package draws. %d is the length in seconds.
type clip struct {
	name    string
	natural bool
	picture func() image.Image // nil: none
	input   string             // of lavfi, if there is no picture
	filter  string
}

// Photographs in motion are made of the dead leaves model: discs of all sizes that cover each other, which has the statistics of natural pictures, with a texture on each.
var clips = []clip{
	{"camera, noise", true, func() image.Image { return leaves(1, 2400, 1350, 20, 235) }, "", "zoompan=z='1.05+0.004*sin(on/20)':x='120+60*sin(on/40)':y='80+30*cos(on/33)':d=%[2]d:s=1920x1080:fps=30,noise=c0s=7:c0f=t+u"},
	{"film, grain", true, func() image.Image { return leaves(2, 2400, 1350, 30, 220) }, "", "zoompan=z='1.02+0.0006*on':x='iw/2-iw/zoom/2':y='ih/2-ih/zoom/2':d=%[2]d:s=1920x1080:fps=24,noise=c0s=14:c0f=t,gblur=sigma=0.7:planes=1"},
	{"dark", true, func() image.Image { return leaves(3, 2400, 1350, 14, 48) }, "", "zoompan=z=1.05:x='100+50*sin(on/50)':y='60':d=%[2]d:s=1920x1080:fps=25,noise=c0s=4:c0f=t+u"},
	{"sport, pan", true, func() image.Image { return leaves(4, 7680, 1080, 30, 200) }, "", "crop=1920:1080:x='mod(n*18,5700)':y=0,tmix=frames=2,noise=c0s=4:c0f=t"},
	{"flat animation", false, nil, "color=0x4060a0:s=1920x1080:r=25:d=%[1]d", "drawbox=x='200+150*mod(t,6)':y=300:w=400:h=300:c=0xe0b040:t=fill,drawbox=x=1300:y='200+60*t':w=250:h=250:c=0x30a060:t=fill,drawbox=y=950:w=1920:h=130:c=0x303030:t=fill"},
	{"screen text", false, page, "", "crop=1920:1080:x=0:y='min(ih-1080,25*t)'"},
	{"slope and title", false, nil, "gradients=s=1920x1080:r=25:d=%[1]d:c0=0x203060:c1=0x90a0c0:x0=0:y0=0:x1=1900:y1=1000:speed=0.001", "drawtext=text='A quiet title':fontsize=90:fontcolor=white:x='300+20*t':y=480"},
	{"test picture", false, nil, "testsrc2=s=1920x1080:r=30:d=%[1]d", "null"},
}

// make makes the clip in a folder, without loss, and returns its path.
func (c clip) make(t *testing.T, folder string, seconds int) string {
	t.Helper()
	path := filepath.Join(folder, c.name+".mkv")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	input := []string{"-f", "lavfi", "-i", fmt.Sprintf(c.input, seconds, seconds*30)}
	if c.picture != nil {
		drawn := filepath.Join(folder, c.name+".png")
		file, err := os.Create(drawn)
		if err == nil {
			err = png.Encode(file, c.picture())
		}
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		input = []string{"-loop", "1", "-framerate", "25", "-i", drawn}
	}
	filter := fmt.Sprintf(c.filter+"%[3]s", seconds, seconds*30, ",format=yuv420p")
	run(t, "ffmpeg", append(input, "-vf", filter, "-t", fmt.Sprint(seconds), "-c:v", "libx264", "-preset", "ultrafast", "-qp", "4", path)...)
	return path
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, append([]string{"-v", "error", "-nostdin", "-y"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// leaves draws a picture of the dead leaves model, with brightness between two values.
func leaves(seed uint64, width, height int, low, high float64) image.Image {
	random := rand.New(rand.NewPCG(seed, 99))
	type leaf struct {
		x, y, r, light, slope, angle, grain float64
		colour                              [2]float64
	}
	var all []leaf
	for range 9000 {
		u := random.Float64()
		r := 6 / math.Sqrt(1-u*(1-math.Pow(6.0/float64(height/3), 2))) // density r^-3
		all = append(all, leaf{random.Float64() * float64(width), random.Float64() * float64(height), r, low + (high-low)*random.Float64(),
			(high - low) * 0.3 * random.NormFloat64(), random.Float64() * 2 * math.Pi, 0.02 + 0.1*random.Float64(), [2]float64{20 * random.NormFloat64(), 20 * random.NormFloat64()}})
	}
	picture := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio444)
	texture := fractal(random, 512)
	for i := range picture.Y {
		picture.Y[i], picture.Cb[i], picture.Cr[i] = byte((low+high)/2), 128, 128
	}
	for _, l := range all {
		cos, sin := math.Cos(l.angle), math.Sin(l.angle)
		for y := max(0, int(l.y-l.r)); y < min(height, int(l.y+l.r)); y++ {
			for x := max(0, int(l.x-l.r)); x < min(width, int(l.x+l.r)); x++ {
				dx, dy := float64(x)-l.x, float64(y)-l.y
				if dx*dx+dy*dy > l.r*l.r {
					continue
				}
				v := l.light + l.slope*(dx*cos+dy*sin)/l.r + l.grain*(high-low)*texture[(y&511)*512+x&511]
				at := picture.YOffset(x, y)
				picture.Y[at] = byte(min(max(v, 16), 235))
				picture.Cb[at], picture.Cr[at] = byte(min(max(128+l.colour[0], 16), 240)), byte(min(max(128+l.colour[1], 16), 240))
			}
		}
	}
	return picture
}

// fractal returns noise of several sizes, whose strength grows with the size.
func fractal(random *rand.Rand, side int) []float64 {
	sum := make([]float64, side*side)
	for cell := 1; cell <= 64; cell *= 2 {
		n := side / cell
		values := make([]float64, n*n)
		for i := range values {
			values[i] = random.NormFloat64() * math.Sqrt(float64(cell)) / 8
		}
		for y := range side {
			for x := range side {
				fx, fy := float64(x%cell)/float64(cell), float64(y%cell)/float64(cell)
				x0, y0 := x/cell, y/cell
				x1, y1 := (x0+1)%n, (y0+1)%n
				sum[y*side+x] += (values[y0*n+x0]*(1-fx)+values[y0*n+x1]*fx)*(1-fy) + (values[y1*n+x0]*(1-fx)+values[y1*n+x1]*fx)*fy
			}
		}
	}
	return sum
}

// page draws a white page with lines of strokes as high as letters, as a text on a screen.
func page() image.Image {
	random := rand.New(rand.NewPCG(8, 8))
	picture := image.NewGray(image.Rect(0, 0, 1920, 1400))
	draw.Draw(picture, picture.Rect, image.NewUniform(color.Gray{250}), image.Point{}, draw.Src)
	ink := image.NewUniform(color.Gray{30})
	for y := 60; y < 1340; y += 34 {
		for x := 120; x < 1800; {
			width := 6 + random.IntN(8)
			for stroke := range 2 + random.IntN(2) {
				left := x + stroke*width/2
				draw.Draw(picture, image.Rect(left, y, left+2, y+20), ink, image.Point{}, draw.Src)
			}
			if bar := y + random.IntN(3)*9; random.IntN(2) == 0 {
				draw.Draw(picture, image.Rect(x, bar, x+width, bar+2), ink, image.Point{}, draw.Src)
			}
			x += width + 4
			if random.IntN(6) == 0 {
				x += 14
			}
		}
	}
	return picture
}
