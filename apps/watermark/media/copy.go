package media

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/mark"
)

// A Copy is one marked copy of a video.
type Copy struct {
	Source string // path
	Target string // path; the file appears when the copy is complete, and never before
	// Invisible hides the mark of a token; nil leaves it out.
	Invisible *Invisible
	Visible   string // a line of text that moves over the pictures; empty leaves it out
	// Progress is called with the part that is done, from 0 to 1, from another goroutine.
	Progress func(part float64)
}

// Invisible says whose mark is hidden.
type Invisible struct {
	Key   mark.Key
	Token string
}

const (
	unfinished  = ".unfinished" // the end of the name of a file that is being written
	endless     = 1 << 30       // pictures of the pattern: FFmpeg takes as many as it needs
	spareFactor = 3             // the disk must have this many times the size of the source free
)

// Make makes a copy, and returns what the copy is. It leaves no file behind when it fails, and may be run again. The sounds of the source are not encoded again unless an MP4
// cannot have them.
func (t Tools) Make(ctx context.Context, c Copy) (*Video, error) {
	v, err := t.Probe(ctx, c.Source)
	if err != nil {
		return nil, err
	}
	if err := enoughSpace(filepath.Dir(c.Target), c.Source); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(filepath.Dir(c.Target), ".copy-*"+unfinished)
	if err != nil {
		return nil, code.New(code.Name(err), err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	made := filepath.Join(folder, "copy.mp4")
	if err := t.encode(ctx, c, v, made); err != nil {
		return nil, err
	}
	copied, err := t.verify(ctx, v, made)
	if err != nil {
		return nil, err
	}
	if err := publish(made, c.Target); err != nil {
		return nil, code.New(code.Name(err), err)
	}
	return copied, nil
}

// Sweep deletes what copies left behind in a folder whose process was killed. No copy may be made in the folder meanwhile.
func Sweep(folder string) error {
	left, err := filepath.Glob(filepath.Join(folder, ".copy-*"+unfinished))
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return err
}

// encode runs FFmpeg.
func (t Tools) encode(ctx context.Context, c Copy, v *Video, made string) error {
	folder := filepath.Dir(made)
	command := t.command(t.ffmpeg())
	command.Dir = folder // files that filters read have plain names there: nothing needs to be escaped
	graph, err := t.graph(c, v, folder)
	if err != nil {
		return err
	}
	args := append([]string{"-v", "error", "-nostdin", "-y", "-stats_period", "0.5", "-progress", "pipe:1"}, v.format.input(c.Source, t.Threads)...)
	if c.Invisible != nil {
		p, err := mark.NewPattern(c.Invisible.Key, c.Invisible.Token, v.Width&^1, v.Height&^1)
		if err != nil {
			return code.New(code.InputTooSmall, err)
		}
		args = append(args, "-thread_queue_size", "2", "-probesize", "32", "-analyzeduration", "0", "-fpsprobesize", "0",
			"-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", fmt.Sprintf("%dx%d", p.Width, p.Height), "-framerate", fmt.Sprintf("1/%d", mark.Phase/time.Second), "-i", "pipe:0")
		command.Feed = func(stdin io.Writer) error { return p.Write(stdin, endless) }
	}
	command.Args = append(append(append(args, "-filter_complex", graph, "-map", "[marked]"), t.tracks(v)...), made)
	command.Read = func(stdout io.Reader, alive func()) error {
		return readProgress(stdout, func(done time.Duration) {
			alive()
			if c.Progress != nil && v.Duration > 0 {
				c.Progress(min(1, float64(done)/float64(v.Duration)))
			}
		})
	}
	_, err = run(ctx, command)
	return err
}

// graph returns the filters, and writes the files that they read.
func (t Tools) graph(c Copy, v *Video, folder string) (string, error) {
	chain := fmt.Sprintf("[0:%d]", v.stream)
	if v.Interlaced {
		chain += "bwdif=mode=send_frame:deint=interlaced,"
	}
	if v.Width%2 != 0 || v.Height%2 != 0 {
		chain += "crop=trunc(iw/2)*2:trunc(ih/2)*2:0:0,"
	}
	chain += "format=yuv420p"
	if c.Invisible != nil {
		chain += "[video];[video][1:v]blend=c0_mode=grainmerge:c1_mode=normal:c2_mode=normal:shortest=1"
	}
	if c.Visible != "" {
		font, err := FontFor(c.Visible, t.Fonts)
		if err != nil {
			return "", err
		}
		if err := linkOrCopy(font, filepath.Join(folder, "font")); err != nil {
			return "", code.New(code.DiskError, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "text"), []byte(oneLine(c.Visible)), 0o600); err != nil {
			return "", code.New(code.Name(err), err)
		}
		chain += ",drawtext=fontfile=font:textfile=text:expansion=none:fontsize=" + strconv.Itoa(max(12, min(v.Width, v.Height)/30)) +
			":fontcolor=white@0.45:bordercolor=black@0.35:borderw=1:x='(w-tw)*(0.5+0.45*sin(t/7))':y='(h-th)*(0.5+0.45*cos(t/11))'"
	}
	return chain + "[marked]", nil
}

// oneLine removes what is not a part of a line, and what would turn the direction of other text.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c < ' ', c == 0x7f, c >= 0x202A && c <= 0x202E, c >= 0x2066 && c <= 0x2069, c == 0x2028, c == 0x2029:
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// tracks returns the arguments of the output.
func (t Tools) tracks(v *Video) []string {
	args := []string{
		"-c:v", "libx264", "-preset", or(t.Preset, "veryfast"), "-crf", strconv.Itoa(or(t.CRF, 23)), "-threads", strconv.Itoa(t.Threads),
		"-fps_mode", "vfr", "-enc_time_base:v", "1/90000", "-video_track_timescale", "90000",
		"-force_key_frames", fmt.Sprintf("expr:gte(t,n_forced*%d)", mark.Phase/time.Second), // where the pattern changes
		"-max_muxing_queue_size", "4096", "-map_metadata", "0", "-map_chapters", "0",
	}
	for i, track := range v.Audio {
		args = append(args, "-map", fmt.Sprintf("0:%d", track.Index))
		switch track.Codec {
		case "aac", "mp3", "ac3", "eac3", "alac", "opus", "flac":
			args = append(args, fmt.Sprintf("-c:a:%d", i), "copy")
		default:
			args = append(args, fmt.Sprintf("-c:a:%d", i), "aac", fmt.Sprintf("-b:a:%d", i), "192k")
		}
	}
	for i, track := range v.Subtitles {
		args = append(args, "-map", fmt.Sprintf("0:%d", track.Index), fmt.Sprintf("-c:s:%d", i), "mov_text")
	}
	return append(args, "-strict", "-2", "-movflags", "+faststart", "-f", "mp4")
}

// readProgress reads what FFmpeg reports, and calls moved when the time of the output grows.
func readProgress(stdout io.Reader, moved func(time.Duration)) error {
	last := int64(-1)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		if name != "out_time_us" && name != "total_size" {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err == nil && name == "out_time_us" && n > last {
			last = n
			moved(time.Duration(n) * time.Microsecond)
		}
	}
	return lines.Err()
}

// verify looks at a copy before it is offered.
func (t Tools) verify(ctx context.Context, source *Video, path string) (*Video, error) {
	made, _, err := t.look(ctx, path)
	if err != nil {
		return nil, code.New(code.OutputWrong, err)
	}
	frame := time.Second / 15
	if source.Rate > 0 {
		frame = max(frame, time.Duration(float64(time.Second)/source.Rate))
	}
	drift := (made.longest - source.longest).Abs()
	switch {
	case len(made.Audio) != len(source.Audio), len(made.Subtitles) != len(source.Subtitles):
		err = fmt.Errorf("the copy has %d tracks of sound and %d of text, the source %d and %d", len(made.Audio), len(made.Subtitles), len(source.Audio), len(source.Subtitles))
	case made.Width != source.Width&^1 || made.Height != source.Height&^1:
		err = fmt.Errorf("the copy is %d×%d, the source %d×%d", made.Width, made.Height, source.Width, source.Height)
	case made.longest+2*frame < source.longest*9/10:
		return nil, code.New(code.InputDamaged, fmt.Errorf("the source can be read for %v of its %v only", made.longest, source.longest))
	case drift > 2*frame:
		err = fmt.Errorf("the pictures of the copy last %v, those of the source %v", made.longest, source.longest)
	}
	if err != nil {
		return nil, code.New(code.OutputWrong, err)
	}
	return made, nil
}

// publish makes a finished file durable and moves it to its name.
func publish(from, to string) error {
	file, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func linkOrCopy(from, to string) error {
	if os.Symlink(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// enoughSpace refuses to start on a disk that will not have enough space.
func enoughSpace(folder, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return code.New(code.Name(err), err)
	}
	return CheckSpace(folder, info.Size()*spareFactor)
}

const spare = 64 << 20 // bytes that are left to everything else

// CheckSpace returns an error with the code DISK_FULL if so many bytes do not fit on the disk of a folder.
func CheckSpace(folder string, bytes int64) error {
	if free, ok := freeSpace(folder); ok && free < uint64(bytes)+spare {
		return code.New(code.DiskFull, fmt.Errorf("%d MiB are free, %d MiB may be needed", free>>20, (bytes+spare)>>20))
	}
	return nil
}

const sampleTime = 2 * time.Minute

// Sample writes a clip of a few seconds to try the service with.
func (t Tools) Sample(ctx context.Context, path string) error {
	c := t.command(t.ffmpeg(), "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", "testsrc2=size=960x540:rate=25:duration=8", "-f", "lavfi", "-i", "sine=frequency=330:duration=8",
		"-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-movflags", "+faststart", "-f", "mp4", path)
	c.Time = sampleTime
	_, err := run(ctx, c)
	return err
}
