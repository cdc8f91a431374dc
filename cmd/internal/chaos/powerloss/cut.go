package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// An outcome sums up the results of all cuts.
type outcome struct {
	writes, syncs, acknowledged int
	lost, damaged               int
	violations                  []string
}

// cut rebuilds the writer's files as they might be after a power cut at random points of its log, and checks each.
func cut(ctx context.Context, dir, log string, points int, r *rand.Rand) (outcome, error) {
	total, err := count(log)
	if err != nil {
		return outcome{}, err
	}
	at := map[int]int{} // calls to cuts
	for range points {
		at[1+r.IntN(total)]++
	}
	f, err := os.Open(log)
	if err != nil {
		return outcome{}, fmt.Errorf("cannot read the log: %w", err)
	}
	defer f.Close()
	var o outcome
	seen, replay := 0, newReplay(filepath.Join(dir, "live"))
	err = calls(f, func(c call) error {
		replay.follow(c)
		seen++
		for range at[seen] {
			if err := o.check(ctx, dir, replay, r); err != nil {
				return err
			}
		}
		return nil
	})
	o.writes, o.syncs = replay.writes, replay.synced
	if err == nil && (o.acknowledged == 0 || o.syncs == 0) {
		err = errors.New("the log has no acknowledgements or no syncs, so it proves nothing")
	}
	return o, err
}

func count(log string) (int, error) {
	f, err := os.Open(log)
	if err != nil {
		return 0, fmt.Errorf("cannot read the log: %w", err)
	}
	defer f.Close()
	n := 0
	err = calls(f, func(call) error { n++; return nil })
	return n, err
}

// check opens the files of one cut and compares the store with what was acknowledged before the cut.
func (o *outcome) check(ctx context.Context, dir string, r *replay, random *rand.Rand) error {
	left, err := os.MkdirTemp(dir, "cut-")
	if err != nil {
		return fmt.Errorf("cannot create a folder for a cut: %w", err)
	}
	defer os.RemoveAll(left)
	if err := r.disk.cut(left, random); err != nil {
		return fmt.Errorf("cannot write the files of a cut: %w", err)
	}
	acks := slices.DeleteFunc(bytes.Split(r.acks, []byte("\n")), func(text []byte) bool { return len(text) == 0 })
	o.acknowledged = max(o.acknowledged, len(acks))
	s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(left, database)})
	if err != nil {
		o.record(&o.damaged, "after %d acknowledgements the file does not open: %v", len(acks), err)
		return nil
	}
	defer s.Close()
	findings, err := s.CheckIntegrity(ctx)
	if err != nil || len(findings) > 0 {
		o.record(&o.damaged, "after %d acknowledgements the integrity check has findings: %v %v", len(acks), err, findings)
	}
	for _, text := range acks {
		var a ack
		if err := json.Unmarshal(text, &a); err != nil {
			return fmt.Errorf("cannot read an acknowledgement in the log: %w", err)
		}
		if !kept(ctx, s, a) {
			o.record(&o.lost, "of %d acknowledgements this one is lost: %s %s with token %d", len(acks), a.Job, a.State, a.Token)
		}
	}
	return nil
}

func (o *outcome) record(count *int, format string, args ...any) {
	if *count++; len(o.violations) < 20 {
		o.violations = append(o.violations, fmt.Sprintf(format, args...))
	}
}

// kept reports whether the store still has what it acknowledged: the job, and its state.
func kept(ctx context.Context, s store.Store, a ack) bool {
	job, err := s.Job(ctx, a.Job)
	switch {
	case err != nil:
		return false
	case a.Token == 0:
		return true
	case a.State == holdfast.Queued:
		return job.Token > a.Token || job.Releases > 0
	}
	return job.State == a.State && job.Token == a.Token
}
