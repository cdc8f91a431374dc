package media

import (
	"context"
	"os/exec"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/child"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
)

// Tools are the programs and what they may use. The zero value uses the programs in the PATH.
type Tools struct {
	FFmpeg  string // path; "ffmpeg" when empty
	FFprobe string // path; "ffprobe" when empty
	Threads int    // of one FFmpeg; as many as there are processors when zero
	Preset  string // of x264; "veryfast" when empty
	CRF     int    // of x264; 23 when zero
	Memory  uint64 // bytes that one FFmpeg may allocate; 4 GiB when zero, enforced on Linux
	Limits  Limits
	// Background lets other processes of the machine go first.
	Background bool
	Fonts      []string // folders with fonts for visible marks; those of the system when empty
}

// Limits are what a video may have. Zero fields have defaults.
type Limits struct {
	Pixels   int           // of one picture; 3840×2160 when zero
	Duration time.Duration // 4 h when zero
	Bytes    int64         // of the file; 20 GiB when zero
	Tracks   int           // 16 when zero
	Stall    time.Duration // FFmpeg is ended when it makes no progress for so long; 5 min when zero
	Time     time.Duration // for one copy; 6 h when zero. It is the seed's guard against jobs that never end
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func (t Tools) ffmpeg() string           { return or(t.FFmpeg, "ffmpeg") }
func (t Tools) ffprobe() string          { return or(t.FFprobe, "ffprobe") }
func (l Limits) pixels() int             { return or(l.Pixels, 3840*2160) }
func (l Limits) tracks() int             { return or(l.Tracks, 16) }
func (l Limits) bytes() int64            { return or(l.Bytes, 20<<30) }
func (l Limits) stall() time.Duration    { return or(l.Stall, 5*time.Minute) }
func (l Limits) time() time.Duration     { return or(l.Time, 6*time.Hour) }
func (l Limits) duration() time.Duration { return or(l.Duration, 4*time.Hour) }

// Check returns an error with the code FFMPEG_MISSING if a program cannot be found.
func (t Tools) Check() error {
	for _, name := range []string{t.ffmpeg(), t.ffprobe()} {
		if _, err := exec.LookPath(name); err != nil {
			return code.New(code.FFmpegMissing, err)
		}
	}
	return nil
}

// command returns a run of FFmpeg or FFprobe.
func (t Tools) command(path string, args ...string) child.Command {
	return child.Command{
		Path: path, Args: args, Time: t.Limits.time(), Stall: t.Limits.stall(), Background: t.Background,
		Limits: child.Limits{Memory: or(t.Memory, 4<<30), FileSize: uint64(4 * t.Limits.bytes())},
	}
}

// input returns the arguments that open a file as the format that it has, and nothing else.
func (f format) input(path string, threads int) []string {
	return []string{"-threads", strconv.Itoa(threads), "-protocol_whitelist", "file,pipe", "-f", f.demuxer, "-i", "file:" + path}
}

// run runs a program and gives its error a code.
func run(ctx context.Context, c child.Command) (child.Output, error) {
	out, err := child.Run(ctx, c)
	if err != nil && ctx.Err() == nil {
		err = code.New(code.Name(err), err)
	}
	return out, err
}
