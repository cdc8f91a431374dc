package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
)

func (s *Site) videos(v *visit) error { return s.showVideos(v, http.StatusOK, "") }

func (s *Site) showVideos(v *visit, status int, problem string) error {
	list, err := s.Campaigns.Assets(v.r.Context(), v.Organisation, listed)
	if err != nil {
		return err
	}
	return s.render(v, status, "videos.html", view{Title: "Videos", Nav: "videos", Bad: problem, Data: list})
}

// serveUpload serves a form with a file, which is not read into memory.
func (s *Site) serveUpload(v *visit, do func(v *visit) error) {
	var err error
	if v.Identity, err = s.Accounts.Visitor(v.r.Context(), v.r); err == nil {
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, s.Upload+maxForm)
		err = do(v)
	}
	if err != nil {
		s.failed(v, err)
	}
}

// An incoming file is what a form has sent. The fields before the file are read too; the first must be the token of the session.
type incoming struct {
	path, name string
	fields     map[string]string
}

// receive reads a form with a file into the folder of uploads, or one that names an upload that has arrived in parts. The caller removes the file unless it was moved.
func (s *Site) receive(v *visit) (in incoming, err error) {
	in.fields = map[string]string{}
	if v.r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		return s.receiveParts(v)
	}
	parts, err := v.r.MultipartReader()
	if err != nil {
		return in, &problem{http.StatusBadRequest, "Choose a file.", err}
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return in, &problem{http.StatusBadRequest, "Choose a file.", nil}
		}
		if err != nil {
			return in, cutOff(err)
		}
		if part.FileName() == "" {
			value, err := io.ReadAll(io.LimitReader(part, 1000))
			if err != nil {
				return in, cutOff(err)
			}
			in.fields[part.FormName()] = string(value)
			continue
		}
		if err := v.CheckForm(in.fields["token"]); err != nil {
			return in, err
		}
		in.name = filepath.Base(strings.ReplaceAll(part.FileName(), `\`, "/"))
		return in, s.store(part, &in)
	}
}

// receiveParts reads a form that names an upload.
func (s *Site) receiveParts(v *visit) (in incoming, err error) {
	if err := v.r.ParseForm(); err != nil {
		return in, cutOff(err)
	}
	if err := v.CheckForm(v.r.PostForm.Get("token")); err != nil {
		return in, err
	}
	in.fields = map[string]string{"campaign": v.r.PostForm.Get("campaign")}
	in.name, in.path, err = s.Campaigns.TakeUpload(v.r.Context(), v.Organisation, v.r.PostForm.Get("upload"))
	return in, err
}

// cutOff is the problem of an upload that did not arrive.
func cutOff(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &problem{http.StatusRequestEntityTooLarge, "The file is larger than allowed.", err}
	}
	return &problem{http.StatusBadRequest, "The file did not arrive completely. Upload it again.", err}
}

func (s *Site) store(part *multipart.Part, in *incoming) error {
	file, err := os.CreateTemp(filepath.Join(s.Folder, campaign.UploadFolder), "upload-*")
	if err != nil {
		return err
	}
	in.path = file.Name()
	_, err = io.Copy(file, part)
	if _, write := errors.AsType[*os.PathError](err); err != nil && !write {
		err = cutOff(err)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(in.path)
	}
	return err
}

func (s *Site) upload(v *visit) error {
	in, err := s.receive(v)
	if err != nil {
		return s.refuseFile(v, err, s.showVideos)
	}
	defer func() { _ = os.Remove(in.path) }() // nothing is there after it was moved
	if _, err := s.Campaigns.AddAsset(v.r.Context(), v.Organisation, in.name, in.path); err != nil {
		return s.refuseFile(v, err, s.showVideos)
	}
	return v.back("/videos", "said", "uploaded")
}

func (s *Site) sample(v *visit) error {
	if _, err := s.Campaigns.AddSample(v.r.Context(), v.Organisation); err != nil {
		return s.refuseFile(v, err, s.showVideos)
	}
	return v.back("/videos", "said", "sample")
}

// refuseFile shows a page with what is wrong with a file.
func (s *Site) refuseFile(v *visit, err error, show func(v *visit, status int, problem string) error) error {
	status, line := explain(err)
	if status >= http.StatusInternalServerError || errors.Is(err, account.ErrForgery) {
		return err
	}
	return show(v, status, line)
}

// A downloadView is the data of a recipient's page.
type downloadView struct {
	campaign.Token
	Name  string
	Left  int
	Limit int
	Why   string
}

func (s *Site) downloadPage(v *visit) error {
	t, c, err := s.Campaigns.BySecret(v.r.Context(), v.r.PathValue("secret"))
	if err != nil {
		return err
	}
	data := downloadView{Token: t, Name: c.Name, Limit: c.MaxDownloads, Left: c.MaxDownloads - t.Downloads}
	switch t.Status {
	case campaign.TokenActive:
	case campaign.TokenConsumed:
		data.Why = sentence(campaign.ErrConsumed.Error())
	case campaign.TokenExpired:
		data.Why = sentence(campaign.ErrExpired.Error())
	default:
		data.Why = "The copy is being made. Open this page again in some minutes."
	}
	return s.render(v, http.StatusOK, "download.html", view{Title: c.Name, Data: data})
}

// download sends a copy, or a part of it.
func (s *Site) download(v *visit) error {
	d, err := s.Campaigns.OpenDownload(v.r.Context(), v.r.PathValue("secret"))
	if err != nil {
		return err
	}
	counted := &counter{ResponseWriter: v.w}
	defer func() { _ = d.Close(context.WithoutCancel(v.r.Context()), counted.sent) }()
	if v.r.Method == http.MethodGet {
		if offset, length := onePart(v.r.Header, d.Size, d.Made); length > 0 {
			err = d.Begin(v.r.Context(), offset, length)
		}
	}
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "video/mp4")
	v.w.Header().Set("Content-Disposition", disposition(d.Name))
	v.w.Header().Set("Cache-Control", "private, no-store")
	http.ServeContent(counted, v.r, "", d.Made, d.File)
	return nil
}

// onePart returns which part of a file a request asks for; a length of 0 is none of it. Conditions and lists of parts are removed from the request: it gets the whole file then, as
// a server may answer, so that what is sent is what was counted.
func onePart(header http.Header, size int64, made time.Time) (offset, length int64) {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		header.Del(name)
	}
	if same := header.Get("If-Range"); same != "" && same != made.UTC().Format(http.TimeFormat) {
		header.Del("Range")
	}
	header.Del("If-Range")
	from, to, ok := strings.Cut(strings.TrimPrefix(header.Get("Range"), "bytes="), "-")
	first, bad1 := strconv.ParseInt(from, 10, 64)
	last, bad2 := strconv.ParseInt(to, 10, 64)
	switch {
	case !ok || from == "" && (bad2 != nil || last < 0) || from != "" && (bad1 != nil || first < 0) || to != "" && (bad2 != nil || last < first && from != ""):
		header.Del("Range")
		return 0, size
	case from == "":
		length = min(last, size)
		return size - length, length
	case to == "":
		last = size - 1
	}
	header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, last))
	return first, max(0, min(last, size-1)-first+1)
}

// A counter counts the bytes of an answer.
type counter struct {
	http.ResponseWriter
	sent int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent += int64(n)
	return n, err
}
