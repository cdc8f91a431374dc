package media

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/code"
)

// A Video is what a file says about itself.
type Video struct {
	Width, Height int // as it is shown: turned if its metadata says so
	Duration      time.Duration
	Rate          float64 // pictures a second, the mean of a video whose rate varies
	Codec         string
	Picture       bool // it is a single picture
	Interlaced    bool
	Audio         []Track
	Subtitles     []Track

	format  format
	stream  int // of its pictures
	longest time.Duration
}

// A Track is a track of sound or text.
type Track struct {
	Index    int
	Codec    string
	Language string
}

// The answer of FFprobe.
type probed struct {
	Streams []struct {
		Index       int    `json:"index"`
		Codec       string `json:"codec_name"`
		Type        string `json:"codec_type"`
		Width       int    `json:"width"`
		Height      int    `json:"height"`
		PixelFormat string `json:"pix_fmt"`
		Transfer    string `json:"color_transfer"`
		FieldOrder  string `json:"field_order"`
		Rate        string `json:"avg_frame_rate"`
		Duration    string `json:"duration"`
		Disposition struct {
			Picture int `json:"attached_pic"`
		} `json:"disposition"`
		Tags struct {
			Language string `json:"language"`
		} `json:"tags"`
		SideData []struct {
			Type     string  `json:"side_data_type"`
			Rotation float64 `json:"rotation"`
		} `json:"side_data_list"`
	} `json:"streams"`
	Format struct {
		Duration string `json:"duration"`
	} `json:"format"`
}

const probeTime = time.Minute

// Probe looks at a file and refuses what cannot be marked without loss, or what exceeds the limits.
func (t Tools) Probe(ctx context.Context, path string) (*Video, error) {
	v, p, err := t.look(ctx, path)
	if err != nil {
		return nil, err
	}
	if v.Picture {
		return nil, code.New(code.InputNotVideo, fmt.Errorf("the file is a picture"))
	}
	for _, s := range p.Streams {
		if s.Index == v.stream {
			if err := refusedPixels(s.PixelFormat, s.Transfer); err != nil {
				return nil, err
			}
			for _, data := range s.SideData {
				if strings.Contains(data.Type, "DOVI") {
					return nil, code.New(code.InputHDR, nil)
				}
			}
		}
	}
	return v, v.checkTracks(t.Limits)
}

// look returns what a file says about itself, checked only against the limits of size.
func (t Tools) look(ctx context.Context, path string) (*Video, *probed, error) {
	f, err := sniff(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(path); err != nil {
		return nil, nil, code.New(code.DiskError, err)
	} else if info.Size() > t.Limits.bytes() {
		return nil, nil, code.New(code.InputTooLarge, fmt.Errorf("the file has %d bytes, the limit is %d", info.Size(), t.Limits.bytes()))
	}
	c := t.command(t.ffprobe(), append([]string{"-v", "error", "-of", "json", "-show_format", "-show_streams"}, f.input(path, 1)...)...)
	c.Time = probeTime
	out, err := run(ctx, c)
	if err != nil {
		return nil, nil, asInput(err)
	}
	var p probed
	if err := json.Unmarshal([]byte(out.Stdout), &p); err != nil {
		return nil, nil, code.New(code.InputDamaged, fmt.Errorf("ffprobe's answer cannot be read: %w", err))
	}
	v, err := p.video(f)
	if err != nil {
		return nil, nil, err
	}
	return v, &p, v.checkSize(t.Limits)
}

// asInput makes a failure of FFmpeg into one of the file, where FFmpeg only looked at it: it has no other reason to fail.
func asInput(err error) error {
	if code.Name(err) == code.FFmpegFailed {
		return code.New(code.InputDamaged, err)
	}
	return err
}

func (p *probed) video(f format) (*Video, error) {
	v := &Video{format: f, stream: -1, Picture: f.picture, Duration: seconds(p.Format.Duration)}
	for _, s := range p.Streams {
		track := Track{s.Index, s.Codec, s.Tags.Language}
		switch {
		case s.Type == "video" && s.Disposition.Picture == 0 && v.stream < 0:
			v.stream, v.Codec, v.Width, v.Height = s.Index, s.Codec, s.Width, s.Height
			v.Rate, v.longest = ratio(s.Rate), seconds(s.Duration)
			v.Interlaced = s.FieldOrder != "" && s.FieldOrder != "progressive" && s.FieldOrder != "unknown"
			for _, data := range s.SideData {
				if quarter := math.Mod(math.Abs(data.Rotation), 180); quarter > 45 && quarter < 135 {
					v.Width, v.Height = v.Height, v.Width
				}
			}
		case s.Type == "video" && s.Disposition.Picture == 0:
			return nil, code.New(code.InputUnsupported, fmt.Errorf("the file has more than one video track"))
		case s.Type == "audio":
			v.Audio = append(v.Audio, track)
		case s.Type == "subtitle":
			v.Subtitles = append(v.Subtitles, track)
		}
	}
	if v.stream < 0 || v.Width <= 0 || v.Height <= 0 {
		return nil, code.New(code.InputNotVideo, nil)
	}
	if v.longest == 0 {
		v.longest = v.Duration
	}
	return v, nil
}

func (v *Video) checkSize(l Limits) error {
	switch {
	case v.Width*v.Height > l.pixels():
		return code.New(code.InputTooLarge, fmt.Errorf("the pictures are %d×%d, the limit is %d pixels", v.Width, v.Height, l.pixels()))
	case min(v.Width, v.Height) < 64:
		return code.New(code.InputTooSmall, fmt.Errorf("the pictures are %d×%d", v.Width, v.Height))
	case v.Duration > l.duration():
		return code.New(code.InputTooLong, fmt.Errorf("the video is %v long, the limit is %v", v.Duration, l.duration()))
	}
	return nil
}

// checkTracks refuses what a copy could not keep.
func (v *Video) checkTracks(l Limits) error {
	if n := 1 + len(v.Audio) + len(v.Subtitles); n > l.tracks() {
		return code.New(code.InputTooManyTracks, fmt.Errorf("the video has %d tracks, the limit is %d", n, l.tracks()))
	}
	if v.Duration <= 0 {
		return code.New(code.InputDamaged, fmt.Errorf("the video has no duration"))
	}
	for _, s := range v.Subtitles {
		switch s.Codec {
		case "mov_text", "subrip", "text", "webvtt", "ass", "ssa":
		default:
			return code.New(code.InputUnsupported, fmt.Errorf("track %d has subtitles as pictures (%s), which an MP4 cannot have: remove them or convert them to text", s.Index, s.Codec))
		}
	}
	return nil
}

// refusedPixels refuses what 8 bits of a standard dynamic range without transparency cannot show.
func refusedPixels(pixels, transfer string) error {
	switch transfer {
	case "smpte2084", "arib-std-b67":
		return code.New(code.InputHDR, fmt.Errorf("the transfer function is %s", transfer))
	}
	for _, part := range []string{"yuva", "rgba", "bgra", "argb", "abgr", "gbrap", "ya8", "ya16"} {
		if strings.HasPrefix(pixels, part) {
			return code.New(code.InputUnsupported, fmt.Errorf("the pictures have transparency (%s), which a copy cannot keep", pixels))
		}
	}
	return nil
}

func seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || s < 0 || s > 1e8 {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

func ratio(text string) float64 {
	above, below, _ := strings.Cut(text, "/")
	a, err1 := strconv.ParseFloat(above, 64)
	b, err2 := strconv.ParseFloat(below, 64)
	if err1 != nil || err2 != nil || b == 0 {
		return 0
	}
	return a / b
}
