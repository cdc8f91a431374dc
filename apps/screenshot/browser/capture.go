package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // decodes pictures of the browser
	"image/png"
	"math"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	_ "golang.org/x/image/webp" // decodes pictures of the browser

	"github.com/holdfastdev/holdfast/apps/screenshot/chromium"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/apps/screenshot/stitch"
)

const (
	// maxSingle is the height in pixels up to which the browser takes a picture at once. Above it repeats or leaves out parts, at the latest from 16,384 on.
	maxSingle = 8192
	// stripHeight is the height in pixels of the strips of taller pictures.
	stripHeight = 4096
	// blankPause is the time before a blank picture is taken again.
	blankPause = 300 * time.Millisecond
)

// errCut is the error of a picture that does not have the size of its part of the page.
var errCut = errors.New("the picture has another size than the page")

// capture takes the picture. A picture that is blank or cut is taken again once.
func (t *tab) capture(ctx context.Context) (*shot.Picture, error) {
	if t.options.Format == shot.PDF {
		return t.print(ctx)
	}
	picture, err := t.capturePart(ctx)
	if name := code.Name(err); err != nil && (name == code.PictureBlank || name == code.PictureCut) {
		if waited := t.sleep(ctx, blankPause); waited != nil {
			return nil, waited
		}
		picture, err = t.capturePart(ctx)
	}
	return picture, err
}

func (t *tab) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// capturePart takes the picture of the part of the page that the options ask for, and checks it.
func (t *tab) capturePart(ctx context.Context) (*shot.Picture, error) {
	part, err := t.part(ctx)
	if err != nil {
		return nil, err
	}
	width, height := t.pixels(part.Width), t.pixels(part.Height)
	if err := t.checkSize(width, height); err != nil {
		return nil, err
	}
	p := &shot.Picture{Facts: shot.Facts{Width: width, Height: height, Strips: 1}}
	if height > maxSingle && t.options.Format != shot.WebP {
		p.Data, p.Facts.Strips, err = t.captureStrips(ctx, part)
	} else {
		p.Data, err = t.captureClip(ctx, part, page.CaptureScreenshotFormat(t.options.Format))
		if err == nil {
			err = t.checkPicture(ctx, p)
		}
	}
	switch {
	case errors.Is(err, errCut), errors.Is(err, stitch.ErrSize):
		return nil, t.fail(code.PictureCut, err)
	case err != nil:
		return nil, err
	case len(p.Data) > t.slot.pool.cfg.Limits.Bytes:
		return nil, t.fail(code.PictureTooLarge, fmt.Errorf("the picture has %d bytes, the limit is %d", len(p.Data), t.slot.pool.cfg.Limits.Bytes))
	}
	if t.options.FullPage {
		now, err := t.part(ctx)
		if err != nil {
			return nil, err
		}
		if now.Height > part.Height {
			return nil, t.fail(code.PictureCut, fmt.Errorf("the page grew from %v to %v while the picture was taken", part.Height, now.Height))
		}
	}
	return p, nil
}

// pixels returns the pixels of a length in CSS pixels.
func (t *tab) pixels(length float64) int { return int(math.Round(length * t.options.Scale)) }

// part returns the part of the page that the picture shows, in whole CSS pixels.
func (t *tab) part(ctx context.Context) (b box, err error) {
	o := t.options
	switch {
	case o.Selector != "":
		if b, err = t.find(ctx, "selector", o.Selector); err != nil {
			return b, err
		}
		right, bottom := math.Ceil(b.X+b.Width), math.Ceil(b.Y+b.Height)
		b.X, b.Y = max(0, math.Floor(b.X)), max(0, math.Floor(b.Y))
		b.Width, b.Height = right-b.X, bottom-b.Y
		if b.Width < 1 || b.Height < 1 {
			return b, t.fail(code.PageSelectorMissing, fmt.Errorf("selector: there is no visible element %.100q", o.Selector))
		}
		return b, nil
	case o.FullPage:
		layout, err := chromium.Call(ctx, t.session, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil || layout.CSSContentSize == nil {
			return b, errors.Join(err, ctx.Err())
		}
		size := layout.CSSContentSize
		return box{0, 0, max(float64(o.Width), math.Ceil(size.Width)), max(1, math.Ceil(size.Height))}, nil
	}
	if t.pixels(float64(o.Height)) <= maxSingle { // the browser draws what is in view
		return box{0, 0, float64(o.Width), float64(o.Height)}, nil
	}
	position, err := evaluate[[]float64](ctx, t, `[scrollX, scrollY]`)
	if err != nil || len(position) != 2 {
		return b, errors.Join(err, ctx.Err())
	}
	return box{position[0], position[1], float64(o.Width), float64(o.Height)}, nil
}

// checkSize refuses pictures that would be too large.
func (t *tab) checkSize(width, height int) error {
	limit, side := t.slot.pool.cfg.Limits.Shot.Pixels, math.MaxInt32
	switch t.options.Format {
	case shot.WebP:
		side = shot.MaxWebP
	case shot.JPEG:
		side = shot.MaxJPEG
	}
	switch {
	case width > limit || height > limit || width*height > limit:
		return t.fail(code.PictureTooLarge, fmt.Errorf("the picture would have %d by %d pixels, the limit is %d", width, height, limit))
	case max(width, height) > side:
		return t.fail(code.PictureTooLarge, fmt.Errorf("the picture would have %d by %d pixels, %s has at most %d on a side: use png", width, height, t.options.Format, side))
	}
	return nil
}

// captureClip lets the browser take the picture of a part of the page.
func (t *tab) captureClip(ctx context.Context, part box, format page.CaptureScreenshotFormat) ([]byte, error) {
	yes, quality := true, int64(t.options.Quality)
	params := page.CaptureScreenshotParams{Format: format}
	if t.options.Selector != "" || t.options.FullPage { // otherwise the browser has drawn what is asked for already
		params.Clip, params.CaptureBeyondViewport = &page.Viewport{X: part.X, Y: part.Y, Width: part.Width, Height: part.Height, Scale: 1}, &yes
	}
	if format != page.CaptureScreenshotFormatPng {
		params.Quality = &quality
	}
	answer, err := chromium.Call(ctx, t.session, page.CaptureScreenshot, params)
	return answer.Data, err
}

// captureStrips takes a tall picture in strips, and makes one of them.
func (t *tab) captureStrips(ctx context.Context, part box) (data []byte, strips int, err error) {
	width, height := t.pixels(part.Width), t.pixels(part.Height)
	step := math.Floor(stripHeight / t.options.Scale)
	top, uniform := 0.0, true
	next := func() (image.Image, error) {
		if top >= part.Height {
			return nil, errCut
		}
		clip := box{part.X, part.Y + top, part.Width, min(step, part.Height-top)}
		raw, err := t.captureClip(ctx, clip, page.CaptureScreenshotFormatPng)
		if err != nil {
			return nil, err
		}
		strip, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCut, err)
		}
		if size := strip.Bounds().Size(); size.X != width || size.Y != t.pixels(top+clip.Height)-t.pixels(top) {
			return nil, fmt.Errorf("%w: a strip at %v is %v", errCut, top, size)
		}
		top += clip.Height
		strips++
		uniform = uniform && stitch.Uniform(strip)
		return strip, nil
	}
	var out bytes.Buffer
	if t.options.Format == shot.JPEG {
		err = stitch.JPEG(&out, width, height, t.options.Quality, next)
	} else {
		err = stitch.PNG(&out, width, height, next)
	}
	if err == nil && uniform && !t.options.AllowBlank {
		err = t.fail(code.PictureBlank, errors.New("all pixels have the same colour"))
	}
	return out.Bytes(), strips, err
}

// checkPicture compares a picture with what was asked for. Only small files are decoded for it: a picture with content is larger than a blank one can be.
func (t *tab) checkPicture(ctx context.Context, p *shot.Picture) error {
	config, _, err := image.DecodeConfig(bytes.NewReader(p.Data))
	if err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	if abs(config.Width-p.Facts.Width) > 1 || abs(config.Height-p.Facts.Height) > 1 {
		return fmt.Errorf("%w: %d by %d instead of %d by %d", errCut, config.Width, config.Height, p.Facts.Width, p.Facts.Height)
	}
	p.Facts.Width, p.Facts.Height = config.Width, config.Height
	if t.options.AllowBlank || len(p.Data) > 2048+config.Width*config.Height/32 {
		return nil
	}
	decoded, _, err := image.Decode(bytes.NewReader(p.Data))
	if err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	if !stitch.Uniform(decoded) {
		return nil
	}
	r, g, b, a := decoded.At(decoded.Bounds().Min.X, decoded.Bounds().Min.Y).RGBA()
	unpainted := a == 0 || r == g && g == b && (r < 0x1400 || r > 0xe800) // white, black or transparent: what a page has before it was drawn; WebP reduces the range
	if !unpainted {
		// A colour may be all that the page or the element has. It is not, if there are texts or pictures.
		if unpainted, err = evaluate[bool](ctx, t, `document.body?.innerText.trim() !== "" || document.querySelector("img, canvas, video, svg") !== null`); err != nil {
			return err
		}
		unpainted = unpainted && t.options.Selector == ""
	}
	if unpainted {
		return t.fail(code.PictureBlank, errors.New("all pixels have the same colour"))
	}
	return nil
}

func abs(n int) int { return max(n, -n) }

// print makes a PDF.
func (t *tab) print(ctx context.Context) (*shot.Picture, error) {
	const inch = 25.4
	paper, margin := t.options.Paper, t.options.Paper.Margin/inch
	answer, err := chromium.Call(ctx, t.session, page.PrintToPDF, page.PrintToPDFParams{
		Landscape: &paper.Landscape, PrintBackground: &paper.Background, PaperWidth: paper.Width / inch, PaperHeight: paper.Height / inch,
		MarginTop: &margin, MarginBottom: &margin, MarginLeft: &margin, MarginRight: &margin, TransferMode: page.PrintToPDFTransferModeReturnAsBase64,
	})
	switch {
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(answer.Data, []byte("%PDF-")):
		return nil, t.fail(code.PictureCut, errors.New("the browser did not make a PDF"))
	case len(answer.Data) > t.slot.pool.cfg.Limits.Bytes:
		return nil, t.fail(code.PictureTooLarge, fmt.Errorf("the PDF has %d bytes, the limit is %d", len(answer.Data), t.slot.pool.cfg.Limits.Bytes))
	}
	return &shot.Picture{Data: answer.Data, Facts: shot.Facts{Strips: 1}}, nil
}
