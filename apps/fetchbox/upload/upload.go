// Package upload puts spool files into object storage or a folder, with a code for each way in which that can fail. An object appears whole or not at all.
package upload

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
)

// An Object is a spool file that is to be stored.
type Object struct {
	Key     string
	File    spool.File
	Type    string            // media type
	Meta    map[string]string // stored with the object, where the storage can
	Replace bool              // an object with this key and another content is replaced; otherwise that is UPLOAD_CONFLICT
}

// An Uploader puts objects into one store. It is safe for concurrent use.
type Uploader struct{ store blob.Store }

// New makes an Uploader to a store.
func New(store blob.Store) *Uploader { return &Uploader{store} }

// Put stores an object. It is no error if the same object is stored already. The error has a code of UPLOAD_, or STORAGE_SPOOL_LOST if the spool file is gone.
func (u *Uploader) Put(ctx context.Context, o Object) error { panic("draft") }

// Sweep deletes what uploads that began longer ago than age left unfinished, and returns how many.
func (u *Uploader) Sweep(ctx context.Context, age time.Duration) (int, error) { panic("draft") }
