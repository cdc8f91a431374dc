package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// enterWithin is how long it may take to write down an upload that has wholly come. It is done then, whether or not the client is still there.
const enterWithin = 30 * time.Second

// upload answers POST /api/upload (C1, C2).
func (a *app) upload(w http.ResponseWriter, r *http.Request) {
	owner, err := a.owner(w, r)
	if err == nil {
		err = a.uploadFor(w, r, owner)
	}
	if err != nil {
		a.fail(w, faultOf(err))
	}
}

func (a *app) uploadFor(w http.ResponseWriter, r *http.Request, owner string) error {
	got, err := a.receive(w, r, owner)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), enterWithin)
	defer cancel()
	job, err := a.jobs.Job(ctx, got.ID)
	if err != nil {
		return a.unstored("an upload was taken and cannot be read", got.ID, err)
	}
	v, err := a.view(ctx, job)
	if err != nil {
		return a.unstored("an upload was taken and cannot be told", got.ID, err)
	}
	if v.Duplicate = got.Duplicate; v.Duplicate {
		return answer(w, http.StatusOK, v)
	}
	w.Header().Set("Location", "/api/jobs/"+v.ID)
	return answer(w, http.StatusCreated, v)
}

// A received upload has become a job, or was found to be one already.
type received struct {
	ID        holdfast.ID
	Duplicate bool // the owner has sent this file for this mapping before
}

// receive takes the upload of a request for an owner: the file is durable first, then the job exists. A file that is not taken leaves nothing but
// a refusal, which the error names.
func (a *app) receive(w http.ResponseWriter, r *http.Request, owner string) (received, error) {
	leave, err := a.mayUpload(owner, r.RemoteAddr)
	if err != nil {
		w.Header().Set("Connection", "close")
		return received{}, err
	}
	defer leave()
	in, err := a.newIntake(w, r)
	if err != nil {
		w.Header().Set("Connection", "close")
		return received{}, err
	}
	err = in.read(r.Context())
	in.body.rest(w.Header(), courtesy*in.most)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), enterWithin)
	defer cancel()
	var got received
	if err == nil {
		got, err = a.enter(ctx, owner, in)
	}
	if err != nil {
		return received{}, a.turnAway(ctx, owner, in, err)
	}
	return got, nil
}

// enter makes the job of a file that lies among the uploads, unless its owner has one for it that is under way or has something to show for itself.
func (a *app) enter(ctx context.Context, owner string, in *intake) (received, error) {
	unique := fmt.Sprintf("%s:%d:%s", in.job.SHA256, in.job.Bytes, in.job.Mapping)
	for n := 1; n <= mostTwins; n++ {
		receipt, err := holdfast.Enqueue(ctx, a.jobs, in.job, func(d *holdfast.Draft) {
			d.ID, d.Queue, d.Owner, d.UniqueKey, d.UniqueDone = in.id, queueConvert, owner, unique, true
			if n > 1 {
				d.UniqueKey = fmt.Sprintf("%s#%d", unique, n)
			}
		})
		if err != nil && !a.entered(ctx, in) {
			return received{}, err
		}
		if err != nil || !receipt.Existing {
			a.keepEntered(ctx, in)
			return received{ID: in.id}, nil
		}
		alive, err := a.worthy(ctx, receipt.ID)
		if err != nil {
			return received{}, err
		}
		if alive {
			a.drop(ctx, in)
			return received{ID: receipt.ID, Duplicate: true}, nil
		}
	}
	return received{}, fmt.Errorf("the last %d jobs for this file have lost what they made", mostTwins)
}

// mostTwins is how many jobs for one file may be known whose results are gone, before something must be wrong with the storage.
const mostTwins = 1000

// entered reports whether a job exists though the store failed to say so: it may have been cut off while it did. Where nobody knows, the file stays: the
// sweep deletes it once it is certain that it belongs to no job.
func (a *app) entered(ctx context.Context, in *intake) bool {
	_, err := a.jobs.Job(ctx, in.id)
	in.stays = err != nil && !errors.Is(err, holdfast.ErrNotFound)
	return err == nil
}

// keepEntered has the source expire in its time. Where that fails, the sweep does it later; the upload is taken all the same.
func (a *app) keepEntered(ctx context.Context, in *intake) {
	if err := a.keepSource(ctx, in.id, in.job.Source, in.job.Bytes); err != nil {
		a.log.Warn("the expiry of a source was not written down: the sweep will see to it", "event", "source_not_kept", "job_id", in.id.String(), "error", err.Error())
	}
}

// worthy reports whether a twin can stand for a new upload. One whose result has expired or is lost cannot (re-upload to regenerate, 000 section 6), nor one
// that waits for a source that is gone: it could only fail.
func (a *app) worthy(ctx context.Context, id holdfast.ID) (bool, error) {
	job, err := a.jobs.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	files, err := a.standing(ctx, job)
	if err != nil {
		return false, err
	}
	if job.State == holdfast.Complete {
		return files.Result.State == fileAvailable, nil
	}
	return files.Source.State == fileAvailable, nil
}

// turnAway cleans up after an upload that came to nothing, writes down a file that was refused (C1), and answers with what the client is told.
func (a *app) turnAway(ctx context.Context, owner string, in *intake, err error) error {
	a.drop(ctx, in)
	var told fault
	var shape notPDF
	switch {
	case errors.As(err, &shape):
		told = fault{code: codeNotPDF, cause: err}
	case !errors.As(err, &told):
		told = a.unstored("an upload could not be stored", in.id, err)
		told.id = holdfast.ID{} // such a job does not exist
	case told.code != codeTooLarge:
		return told // the request made no sense, or broke off: there is no file to speak of
	}
	refusal := Refusal{Name: cleanName(in.job.Name), Mapping: in.job.Mapping, Bytes: in.job.Bytes, Code: told.code}
	if told.cause != nil {
		refusal.Detail = failure.Scrub(told.cause.Error())
	}
	receipt, err := holdfast.Enqueue(ctx, a.jobs, refusal, func(d *holdfast.Draft) { d.Queue, d.Owner = queueRefuse, owner })
	if err != nil {
		a.log.Error("a refused upload was not written down", "event", "refusal_lost", "error_code", told.code, "error", err.Error())
		return told
	}
	told.id = receipt.ID
	return told
}

// unstored is the answer where our own storage was the trouble. The log has the whole story.
func (a *app) unstored(what string, id holdfast.ID, err error) fault {
	a.log.Error(what, "event", "upload_failed", "job_id", id.String(), "error_code", codeIO, "error", err.Error())
	return fault{code: codeIO, id: id, cause: err}
}

// drop deletes what was stored of an upload. Where that fails the sweep finds it: it belongs to no job.
func (a *app) drop(ctx context.Context, in *intake) {
	if !in.stored || in.stays {
		return
	}
	if err := a.uploads.Delete(ctx, in.job.Source); err != nil {
		a.log.Warn("the file of an upload that came to nothing was not deleted: the sweep will see to it", "event", "upload_not_dropped", "error", err.Error())
	}
}
