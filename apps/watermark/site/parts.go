package site

import (
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
)

// Uploads in parts follow the core of the tus protocol 1.0.0 and its extension creation: POST makes an upload, HEAD says how much has arrived, PATCH adds a part. The form that
// follows names the upload. Without JavaScript a form sends the file itself.

const (
	tusVersion = "1.0.0"
	partType   = "application/offset+octet-stream"
)

// serveParts answers requests for uploads in parts. They have the token of the session in a header.
func (s *Site) serveParts(v *visit, do func(v *visit) error) {
	v.w.Header().Set("Tus-Resumable", tusVersion)
	v.w.Header().Set("Cache-Control", "no-store")
	var err error
	if v.Identity, err = s.Accounts.Visitor(v.r.Context(), v.r); err == nil && v.r.Method != http.MethodHead && v.r.Method != http.MethodGet {
		err = v.CheckForm(v.r.Header.Get("X-Form-Token"))
	}
	if err == nil {
		err = do(v)
	}
	if err != nil {
		status, line := explain(err)
		web.ReportError(v.w, v.r, s.Log, status, err)
		http.Error(v.w, line, status)
	}
}

func (s *Site) beginUpload(v *visit) error {
	size, err := strconv.ParseInt(v.r.Header.Get("Upload-Length"), 10, 64)
	if err != nil {
		return &problem{http.StatusBadRequest, "The header Upload-Length is missing.", err}
	}
	u, err := s.Campaigns.CreateUpload(v.r.Context(), v.Organisation, metadata(v.r.Header.Get("Upload-Metadata"), "filename"), size)
	if err != nil {
		return err
	}
	v.w.Header().Set("Location", "/uploads/"+u.ID)
	v.w.WriteHeader(http.StatusCreated)
	return nil
}

// metadata returns a value of the header Upload-Metadata: names, each with a value in base64, separated by commas.
func metadata(header, name string) string {
	for pair := range strings.SplitSeq(header, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if key != name {
			continue
		}
		if text, err := base64.StdEncoding.DecodeString(value); err == nil {
			return string(text)
		}
	}
	return ""
}

func (s *Site) lookUpload(v *visit) error {
	u, err := s.Campaigns.Upload(v.r.Context(), v.Organisation, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	arrived(v, u)
	v.w.WriteHeader(http.StatusOK)
	return nil
}

func arrived(v *visit, u campaign.Upload) {
	v.w.Header().Set("Upload-Offset", strconv.FormatInt(u.Received, 10))
	v.w.Header().Set("Upload-Length", strconv.FormatInt(u.Size, 10))
}

func (s *Site) appendUpload(v *visit) error {
	offset, err := strconv.ParseInt(v.r.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || v.r.Header.Get("Content-Type") != partType {
		return &problem{http.StatusBadRequest, "A part has the header Upload-Offset and the type " + partType + ".", err}
	}
	u, err := s.Campaigns.Append(v.r.Context(), v.Organisation, v.r.PathValue("id"), offset, v.r.Body)
	if _, disk := errors.AsType[*os.PathError](err); err != nil && !disk && v.r.Context().Err() != nil {
		err = cutOff(err)
	}
	if err != nil {
		return err
	}
	arrived(v, u)
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}
