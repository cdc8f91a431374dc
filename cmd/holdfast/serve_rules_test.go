package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/store"
)

// Either of a server's two engines may reclaim the jobs of a lost worker. Both must apply the server's policy.
func TestBothEnginesOfAServerApplyItsPolicyToLostWorkers(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte("defaults: {max_crashes: 1}\n"), 0o600))
	p := startServe(t, nil, "--store", filepath.Join(dir, "jobs.db"), "--policy", filepath.Join(dir, "policy.yaml"), "--lease", "2s", "--log-level", "error")
	client, err := client.Dial(p.url, client.Config{})
	ok(t, err)
	s := client.Store()
	var ids []holdfast.ID
	for n := range 10 { // their leases expire one after the other, so that either engine may reclaim each
		receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "mine"}})
		ok(t, err)
		lasting := time.Second + time.Duration(n)*300*time.Millisecond
		leases, err := s.Claim(ctx, store.Claim{Worker: fmt.Sprint("worker ", n), Queues: []string{holdfast.DefaultQueue}, Limit: 1, Start: 1, Lease: lasting})
		ok(t, err)
		if len(leases) != 1 {
			t.Fatalf("%d leases", len(leases))
		}
		ids = append(ids, receipts[0].ID)
	}
	for _, id := range ids {
		var job holdfast.Job
		waitUntil(t, "the loss is judged", func() bool {
			job, err = s.Job(ctx, id)
			ok(t, err)
			return job.Crashes > 0
		})
		if job.State != holdfast.Failed || job.LastFailure.Code != "POISON" {
			t.Errorf("after %d lost worker of 1 it is %s", job.Crashes, job.State)
		}
	}
}
