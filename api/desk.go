package api

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// A Desk is an operator's desk at a server: what is asked and done here is asked and done there.
type Desk struct{ c *Client }

// Desk opens the desk.
func (c *Client) Desk() *Desk { return &Desk{c} }

// Job tells all about one job.
func (d *Desk) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return call(ctx, d.c, GetJob, ByID{id})
}

// Jobs lists what matches, newest first.
func (d *Desk) Jobs(ctx context.Context, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error) {
	out, err := call(ctx, d.c, ListJobs, JobsIn{Selection: selectionOf(f), State: f.State})
	return out.Jobs, out.Cursor, err
}
