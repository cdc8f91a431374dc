package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/failure"
)

// recordTimeout is how long it may take to create the job of an upload that has arrived completely. The job is created even if the client has disconnected.
const recordTimeout = 30 * time.Second

// upload answers POST /api/upload (C1, C2).
func (a *app) upload(w http.ResponseWriter, r *http.Request) {
	owner, err := a.owner(w, r)
	if err == nil {
		err = a.uploadFor(w, r, owner)
	}
	if err != nil {
		a.writeError(w, apiErrorOf(err))
	}
}

func (a *app) uploadFor(w http.ResponseWriter, r *http.Request, owner string) error {
	got, err := a.receive(w, r, owner)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), recordTimeout)
	defer cancel()
	job, err := a.jobs.Job(ctx, got.ID)
	if err != nil {
		return a.storageError("cannot read the job of an upload", got.ID, err)
	}
	v, err := a.view(ctx, job)
	if err != nil {
		return a.storageError("cannot describe the job of an upload", got.ID, err)
	}
	if v.Duplicate = got.Duplicate; v.Duplicate {
		return web.WriteJSON(w, http.StatusOK, v)
	}
	w.Header().Set("Location", "/api/jobs/"+v.ID)
	return web.WriteJSON(w, http.StatusCreated, v)
}

// A received upload is a new job, or one that existed already.
type received struct {
	ID        holdfast.ID
	Duplicate bool // the owner has uploaded this file with this mapping before
}

// receive reads an upload and creates its job. The file is durable before the job exists. Of a refused file only a Refusal remains; the error has its id.
func (a *app) receive(w http.ResponseWriter, r *http.Request, owner string) (received, error) {
	release, err := a.admitUpload(owner, r.RemoteAddr)
	if err != nil {
		w.Header().Set("Connection", "close")
		return received{}, err
	}
	defer release()
	in, err := a.newIntake(w, r)
	if err != nil {
		w.Header().Set("Connection", "close")
		return received{}, err
	}
	err = in.read(r.Context())
	in.body.drain(w.Header(), drainFactor*in.maxBytes)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), recordTimeout)
	defer cancel()
	var got received
	if err == nil {
		got, err = a.createJob(ctx, owner, in)
	}
	if err != nil {
		return received{}, a.refuseUpload(ctx, owner, in, err)
	}
	return got, nil
}

// createJob creates the job of a stored file, unless its owner has a job for the same file and mapping that is live or whose result still exists.
func (a *app) createJob(ctx context.Context, owner string, in *intake) (received, error) {
	unique := fmt.Sprintf("%s:%d:%s", in.job.SHA256, in.job.Bytes, in.job.Mapping)
	for n := 1; n <= maxDuplicates; n++ {
		receipt, err := holdfast.Enqueue(ctx, a.jobs, in.job, func(d *holdfast.Draft) {
			d.ID, d.Queue, d.Owner, d.UniqueKey, d.UniqueDone = in.id, queueConvert, owner, unique, true
			if n > 1 {
				d.UniqueKey = fmt.Sprintf("%s#%d", unique, n)
			}
		})
		if err != nil && !a.jobExists(ctx, in) {
			return received{}, err
		}
		if err != nil || !receipt.Existing {
			a.recordSource(ctx, in)
			return received{ID: in.id}, nil
		}
		reusable, err := a.canReuse(ctx, receipt.ID)
		if err != nil {
			return received{}, err
		}
		if reusable {
			a.deleteUpload(ctx, in)
			return received{ID: receipt.ID, Duplicate: true}, nil
		}
	}
	return received{}, fmt.Errorf("the results of the last %d jobs for this file are missing: check the storage in RESULTS_DIR", maxDuplicates)
}

// maxDuplicates is how many jobs for one file may have lost their results before an upload of it fails: then something is wrong with the storage.
const maxDuplicates = 1000

// jobExists reports whether a job exists although Enqueue returned an error: the connection may have broken after the commit. If that cannot be found out, the file is
// kept: the sweep deletes it once it is certain that it belongs to no job.
func (a *app) jobExists(ctx context.Context, in *intake) bool {
	_, err := a.jobs.Job(ctx, in.id)
	in.keepFile = err != nil && !errors.Is(err, holdfast.ErrNotFound)
	return err == nil
}

// recordSource records the PDF, so that it expires. If that fails, the sweep does it later and the upload is still accepted.
func (a *app) recordSource(ctx context.Context, in *intake) {
	if err := a.keepSource(ctx, in.id, in.job.Source, in.job.Bytes); err != nil {
		a.log.Warn("cannot record the PDF of an upload, the sweep will do it", "event", "source_not_kept", "job_id", in.id.String(), "error", err.Error())
	}
}

// canReuse reports whether an existing job can answer a new upload of the same file. A job whose result has expired or is missing cannot (re-upload to regenerate, 000
// section 6), nor can a job whose PDF is gone: it could only fail.
func (a *app) canReuse(ctx context.Context, id holdfast.ID) (bool, error) {
	job, err := a.jobs.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	files, err := a.checkFiles(ctx, job)
	if err != nil {
		return false, err
	}
	if job.State == holdfast.Complete {
		return files.Result.State == fileAvailable, nil
	}
	return files.Source.State == fileAvailable, nil
}

// refuseUpload cleans up after a failed upload, records a refused file (C1), and returns the answer for the client.
func (a *app) refuseUpload(ctx context.Context, owner string, in *intake, err error) error {
	a.deleteUpload(ctx, in)
	var answer apiError
	var reason notPDF
	switch {
	case errors.As(err, &reason):
		answer = apiError{code: codeNotPDF, cause: err}
	case !errors.As(err, &answer):
		answer = a.storageError("cannot store an upload", in.id, err)
		answer.id = holdfast.ID{} // no job with this id exists
	case answer.code != codeTooLarge:
		return answer // the request was malformed or interrupted: there is no file to record
	}
	refusal := Refusal{Name: cleanName(in.job.Name), Mapping: in.job.Mapping, Bytes: in.job.Bytes, Code: answer.code}
	if answer.cause != nil {
		refusal.Detail = failure.Scrub(answer.cause.Error())
	}
	receipt, err := holdfast.Enqueue(ctx, a.jobs, refusal, func(d *holdfast.Draft) { d.Queue, d.Owner = queueRefuse, owner })
	if err != nil {
		a.log.Error("cannot record a refused upload", "event", "refusal_lost", "error_code", answer.code, "error", err.Error())
		return answer
	}
	answer.id = receipt.ID
	return answer
}

// storageError logs an error of the storage or the store and returns the answer for the client.
func (a *app) storageError(what string, id holdfast.ID, err error) apiError {
	a.log.Error(what, "event", "upload_failed", "job_id", id.String(), "error_code", codeIO, "error", err.Error())
	return apiError{code: codeIO, id: id, cause: err}
}

// deleteUpload deletes the stored file of an upload. If that fails, the sweep deletes it later, because it belongs to no job.
func (a *app) deleteUpload(ctx context.Context, in *intake) {
	if !in.stored || in.keepFile {
		return
	}
	if err := a.uploads.Delete(ctx, in.job.Source); err != nil {
		a.log.Warn("cannot delete the file of a failed upload, the sweep will do it", "event", "upload_not_dropped", "error", err.Error())
	}
}
