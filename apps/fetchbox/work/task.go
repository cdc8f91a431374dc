// Package work brings resources into the object storage: one job for each resource, which downloads it into the spool, shows it to its handler and stores it, and one job
// for each manifest, which declares that the manifest is complete.
//
// An attempt can be interrupted at any point and run again. A resource that was downloaded is not downloaded again because its upload failed or its worker was killed,
// and downloads and uploads have limits of their own. What interrupted attempts leave behind is deleted by the sweeps.
package work

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
)

// The queues. Accepting is separate, so that it never waits behind a backlog of resources.
const (
	QueueFetch  = "fetch"
	QueueAccept = "accept"
)

// A Task is the job that fetches one resource. The tasks of one manifest are a group: the FetchBox job.
type Task struct {
	manifest.Resource
	Index     int `json:"index"`     // its line in the manifest, from 1
	Downloads int `json:"downloads"` // attempts to download
	Storage   int `json:"storage"`   // attempts to store
}

// Kind returns the kind of the job.
func (Task) Kind() string { return "fetch.resource" }

// An Acceptance is the job that declares a manifest complete. It is stored in one transaction with all its tasks and carries the client's idempotency key, so a
// manifest exists as a whole, once, and its group is sealed even if the process is killed right after that.
type Acceptance struct {
	Job       holdfast.ID `json:"job"`       // the group
	Resources int         `json:"resources"` // their number
	Digest    string      `json:"digest"`    // of the manifest: a second manifest with the same idempotency key must be the same
}

// Kind returns the kind of the job.
func (Acceptance) Kind() string { return "fetch.accept" }

// A Stored is the result of a task: the object.
type Stored struct {
	Key    string `json:"key"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Type   string `json:"type"`
	URL    string `json:"url"` // after redirects
	Status int    `json:"status"`
	Proxy  string `json:"proxy"`
	ETag   string `json:"etag,omitempty"`
	// NotChanged: the source has no other content than the ETag of the request stands for. Nothing was stored; the object is the one of before.
	NotChanged bool              `json:"not_changed,omitempty"`
	Meta       map[string]string `json:"meta,omitempty"` // what the handler found
}

var plainOwner = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

// ownerFolder returns the first segment of the keys of an owner's objects: owners cannot reach each other's objects.
func ownerFolder(owner string) string {
	if plainOwner.MatchString(owner) {
		return owner
	}
	sum := sha256.Sum256([]byte(owner))
	return "owner." + hex.EncodeToString(sum[:8]) // with a dot: no plain owner has this name
}

// ObjectKey returns the key of a resource in the bucket: the owner, and the key that the client chose, or else the job and the resource's line.
func ObjectKey(owner string, job holdfast.ID, r *manifest.Resource, index int) string {
	if r.Key != "" {
		return ownerFolder(owner) + "/" + r.Key
	}
	return fmt.Sprintf("%s/%s/%06d", ownerFolder(owner), job, index)
}

// RequestOf returns the download of a resource. The worker adds what belongs to its attempt.
func RequestOf(r *manifest.Resource) fetch.Request {
	header := http.Header{}
	for name, value := range r.Headers {
		header.Set(name, value)
	}
	return fetch.Request{URL: r.URL, Header: header, Expect: fetch.Expect{SHA256: r.SHA256, Type: r.Type, Size: r.Size}, Pool: r.Proxy, Region: r.Region, ETag: r.ETag}
}
