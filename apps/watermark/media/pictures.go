package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/apps/watermark/detect"
)

const (
	shortClip    = 4 * time.Second
	mostPictures = 2400
)

// ReadMarks reads a clip or a picture for the search of a mark. Its format may be any that FFmpeg reads here, and it may be damaged at its end.
func (t Tools) ReadMarks(ctx context.Context, path string) (*detect.Sum, error) {
	v, _, err := t.look(ctx, path)
	if err != nil {
		return nil, err
	}
	width, height := detect.Scale(v.Width, v.Height)
	sum, err := detect.NewSum(width, height, float64(height)/float64(v.Height))
	if err != nil {
		return nil, code.New(code.InputTooSmall, err)
	}
	rate := pictureRate(v)
	filters := fmt.Sprintf("[0:%d]fps=%g:start_time=0:round=near,", v.stream, rate)
	if v.Picture {
		filters = fmt.Sprintf("[0:%d]", v.stream)
	}
	if width != v.Width || height != v.Height {
		filters += fmt.Sprintf("scale=%d:%d:flags=bilinear,", width, height)
	}
	command := t.command(t.ffmpeg(), append(append([]string{"-v", "error", "-nostdin"}, v.format.input(path, t.Threads)...),
		"-filter_complex", filters+"format=yuv420p,extractplanes=y[y]", "-map", "[y]", "-f", "rawvideo", "-fps_mode", "passthrough", "pipe:1")...)
	command.Read = func(stdout io.Reader, alive func()) error {
		picture := make([]byte, width*height)
		for n := range 10 * mostPictures {
			if _, err := io.ReadFull(stdout, picture); err != nil {
				return nil // the end, also of a clip that is cut off
			}
			alive()
			sum.Add(picture, time.Duration(float64(n)/rate*float64(time.Second)))
		}
		return errEnough
	}
	_, err = run(ctx, command)
	if err != nil && (ctx.Err() != nil || sum.Pictures() == 0) {
		return nil, asInput(err)
	}
	if sum.Pictures() == 0 {
		return nil, code.New(code.InputNotVideo, errors.New("the file has no pictures"))
	}
	return sum, nil
}

// errEnough ends FFmpeg when enough pictures were read.
var errEnough = errors.New("enough pictures were read")

// pictureRate returns how many pictures a second are examined: few are enough, because the mark does not change for seconds.
func pictureRate(v *Video) float64 {
	switch {
	case v.Picture:
		return 1
	case v.Duration > 0 && v.Duration < shortClip:
		return 30
	case v.Duration.Seconds()*10 > mostPictures:
		return mostPictures / v.Duration.Seconds()
	}
	return 10
}
