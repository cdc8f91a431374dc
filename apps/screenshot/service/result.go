package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
)

// ResultPath is where links to pictures lead, followed by the id.
const ResultPath = "/api/v1/results/"

// result returns the picture of a shot with a link that needs no key.
func (s *Service) result(v *Job) *Result {
	// The same for some minutes, so that pages that are read again show the same address and browsers need not load the picture again.
	step := s.cfg.LinkLife / 2
	until := time.Now().Truncate(step).Add(s.cfg.LinkLife + step)
	expires := strconv.FormatInt(until.Unix(), 10)
	query := url.Values{"expires": {expires}, "signature": {s.sign(v.ID, v.Generation, expires)}}
	return &Result{URL: s.cfg.Base + ResultPath + v.ID.String() + "?" + query.Encode(), ExpiresAt: until.UTC(), Format: v.Stored.Format, Facts: v.Stored.Facts}
}

func (s *Service) sign(id holdfast.ID, generation int, expires string) string {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(id.String() + "\n" + strconv.Itoa(generation) + "\n" + expires))
	return hex.EncodeToString(mac.Sum(nil))
}

// Linked opens the picture that a link leads to. Any link that this service did not sign, or that has expired, is refused in the same way.
func (s *Service) Linked(ctx context.Context, id holdfast.ID, expires, signature string) (Job, *blob.File, error) {
	bad := &Error{Code: code.Forbidden, Message: "This link is not valid any more. Read the screenshot again to get a new one."}
	until, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || time.Now().Unix() > until {
		return Job{}, nil, bad
	}
	job, err := s.jobs.Job(ctx, id)
	if err != nil || !hmac.Equal([]byte(s.sign(id, job.Generation, expires)), []byte(signature)) {
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) && !errors.Is(err, holdfast.ErrPurged) {
			return Job{}, nil, explain(err)
		}
		return Job{}, nil, bad
	}
	return s.Open(ctx, job.Owner, id)
}

// Open opens the picture of a shot of an organisation. The caller closes the file.
func (s *Service) Open(ctx context.Context, owner string, id holdfast.ID) (Job, *blob.File, error) {
	v, err := s.Job(ctx, owner, id)
	if err != nil {
		return v, nil, err
	}
	switch {
	case v.Status == Failed:
		return v, nil, &Error{Code: v.Code, Message: *v.LastFailureReason}
	case v.Stored == nil:
		return v, nil, &Error{Code: code.NotReady, Message: "The screenshot is " + v.Status + ": there is no picture."}
	}
	file, err := s.cfg.Bucket.Open(ctx, v.Stored.Key)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return v, nil, &Error{Code: code.Expired}
	case err != nil:
		return v, nil, &Error{Code: code.PictureStore, After: 5 * time.Second, Cause: err}
	}
	return v, file, nil
}
