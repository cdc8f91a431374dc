package sqlite

import "github.com/holdfastdev/holdfast/store"

// artifact records an artifact of a job, or that it has expired. The job must exist: retention finds artifacts by their
// job.
func (t *tx) artifact(a *store.Artifact) error {
	if _, err := t.findJob(store.Intervention{Job: a.Job}); err != nil {
		return err
	}
	if a.Expired {
		_, err := t.exec("artifact_expire", a.Job, a.Name, a.Ref, a.Size, t.now)
		return err
	}
	var expire any
	if a.ExpireIn > 0 {
		expire = t.at(a.ExpireIn)
	}
	_, err := t.exec("artifact_keep", a.Job, a.Name, a.Ref, a.Size, t.now, expire)
	return err
}
