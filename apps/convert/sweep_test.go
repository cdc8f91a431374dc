package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// 000 section 11 (no double XML, and nothing left when a process dies): the sweep cleans up what a crash leaves between the steps of an upload.
func TestTheSweepFindsWhatCrashesLeft(t *testing.T) {
	eachFileScene(t, func(s *fileScene) {
		s.old()
		const long = 2 * time.Hour
		orphan, young, foreign := holdfast.NewID(), holdfast.NewID(), holdfast.NewID()
		s.lays(s.uploads, sourceKey(orphan), long)
		s.lays(s.results, resultKey(orphan), long)
		s.lays(s.uploads, sourceKey(young), 30*time.Minute)
		s.lays(s.uploads, "notes.txt", long)
		s.lays(s.uploads, resultKey(foreign), long) // an XML is no source
		queued, ended := s.enters(1), s.enters(2)
		s.works(queueConvert)
		s.becomes(queued, holdfast.Complete)
		s.becomes(ended, holdfast.Complete)
		bare := s.unkeeps(3)
		for _, key := range []string{sourceKey(queued), sourceKey(ended), sourceKey(bare)} {
			s.ages(key, long)
		}
		s.ages(resultKey(ended), long)

		for range 3 {
			s.sweeps()
		}
		s.there(s.uploads, sourceKey(orphan), false)
		s.there(s.results, resultKey(orphan), false)
		for _, key := range []string{sourceKey(young), "notes.txt", resultKey(foreign), sourceKey(queued), sourceKey(ended), sourceKey(bare)} {
			s.there(s.uploads, key, true)
		}
		s.there(s.results, resultKey(ended), true)
		if f, err := s.checkFiles(s.Context(), s.job(bare)); err != nil || f.Source.ExpireAt.IsZero() || f.Source.Size == 0 {
			t.Errorf("a source without a record was not recorded: %+v, %v", f, err)
		}
	})
}

// unkeeps creates a job as an upload does that is killed before it records its source.
func (s *fileScene) unkeeps(n int) holdfast.ID {
	s.Helper()
	id, text := holdfast.NewID(), string(samplePDF(n))
	if _, err := s.uploads.Put(s.Context(), sourceKey(id), strings.NewReader(text)); err != nil {
		s.Fatal(err)
	}
	args := Conversion{Name: "bare.pdf", Mapping: "text", SHA256: strings.Repeat("0", 64), Bytes: int64(len(text)), Source: sourceKey(id)}
	if _, err := holdfast.Enqueue(s.Context(), s.store, args, func(d *holdfast.Draft) { d.ID, d.Queue, d.Owner = id, "idle", "session:test" }); err != nil {
		s.Fatal(err)
	}
	return id
}

// C10: if a worker dies after it wrote the XML, the next attempt records it; if the job was cancelled meanwhile, the sweep does.
func TestTheSweepRecordsAResultWithoutARecord(t *testing.T) {
	eachFileScene(t, func(s *fileScene) {
		s.old()
		id := s.unkeeps(1)
		s.lays(s.results, resultKey(id), 2*time.Hour)
		s.sweeps()
		if kept := s.keptNames(id); kept != "" {
			t.Errorf("%q has a record already: the source is young, and the worker of the job records the result", kept)
		}
		if _, err := s.store.Cancel(s.Context(), store.Intervention{Job: id, Actor: "test"}); err != nil {
			t.Fatal(err)
		}
		s.sweeps()
		s.there(s.results, resultKey(id), true)
		if kept := s.keptNames(id); kept != artifactResult+" " {
			t.Errorf("%q is kept", kept)
		}
	})
}

func (s *fileScene) keptNames(id holdfast.ID) (names string) {
	s.Helper()
	kept, err := s.store.Artifacts(s.Context(), store.ArtifactFilter{Job: id})
	if err != nil {
		s.Fatal(err)
	}
	for _, k := range kept {
		names += k.Name + " "
	}
	return names
}

func TestTheSweepRemovesPartsThatAreOld(t *testing.T) {
	s := newScene(t, "")
	dir := filepath.Join(s.set.Uploads, "aa")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, ago := range map[string]time.Duration{".01-aa.pdf.old": 2 * time.Hour, ".01-aa.pdf.young": time.Minute} {
		path, then := filepath.Join(dir, name), time.Now().Add(-ago)
		if err := errors.Join(os.WriteFile(path, []byte("half"), 0o600), os.Chtimes(path, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := filesIn(t, s.set.Uploads); len(left) != 1 || left[".01-aa.pdf.young"] == "" {
		t.Errorf("left are %v", left)
	}
}

// A wrong or empty DATABASE_URL does not delete files of another store.
func TestTheSweepLeavesFilesThatAreOlderThanTheStore(t *testing.T) {
	eachFileScene(t, func(s *fileScene) {
		key := sourceKey(holdfast.NewID())
		s.lays(s.uploads, key, 2*time.Hour)
		s.sweeps()
		s.sweeps()
		s.there(s.uploads, key, true)
	})
}

// A purged job has a tombstone: its remaining files can be deleted.
func TestTheSweepRemovesWhatAPurgedJobLeft(t *testing.T) {
	eachFileScene(t, func(s *fileScene) {
		id := s.enters(1)
		s.works(queueConvert)
		s.becomes(id, holdfast.Complete)
		s.purges(id)
		s.lays(s.results, resultKey(id), 2*time.Hour) // by a worker that had lost the lease and did not know
		s.sweeps()
		s.there(s.results, resultKey(id), false)
	})
}

// Rounds are bounded, and each continues where the last one ended, in whichever process.
func TestTheSweepContinuesWhereItEnded(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := &fileScene{scene: newScene(t, address)}
		s.dir = s.set.Uploads
		s.old()
		then := time.Now().Add(-2 * time.Hour)
		for i := range sweepLimit + 200 {
			path := filepath.Join(s.set.Uploads, fmt.Sprintf("%02d", i%100), fmt.Sprintf("note-%06d.txt", i))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Chtimes(path, then, then)); err != nil {
				t.Fatal(err)
			}
		}
		last := holdfast.NewID()
		last[15] = 0xff // its folder comes after all others
		s.lays(s.uploads, sourceKey(last), 2*time.Hour)
		s.sweeps()
		s.there(s.uploads, sourceKey(last), true)
		other, _ := s.process()
		if err := other.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.there(s.uploads, sourceKey(last), false)

		var together sync.WaitGroup
		for range 4 {
			together.Go(s.sweeps) // a concurrent sweep is no error
		}
		together.Wait()
		if left := filesIn(t, s.set.Uploads); len(left) != sweepLimit+200 {
			t.Errorf("%d files are left", len(left))
		}
	})
}

// While the storage or the store fails, no file counts as missing and none is deleted.
func TestASweepThatFailsDeletesNothing(t *testing.T) {
	s := &fileScene{scene: newScene(t, "")}
	s.dir = s.set.Uploads
	s.old()
	id := s.unkeeps(1)
	s.ages(sourceKey(id), 2*time.Hour)
	for _, verb := range []string{"Records", "Artifacts", "Apply"} {
		s.faulty.Plan(storetest.Fault{Verb: verb})
		if err := s.sweep(t.Context()); err == nil {
			t.Errorf("the store does not answer %s, and the sweep returns no error", verb)
		}
		s.there(s.uploads, sourceKey(id), true)
	}
	if err := os.Rename(s.set.Uploads, s.set.Uploads+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("the folder is gone: %v", err)
	}
	if f, err := s.checkFiles(t.Context(), s.job(id)); err == nil {
		t.Errorf("the state of the files is unknown, and yet: %+v", f)
	}
	if err := os.Rename(s.set.Uploads+".away", s.set.Uploads); err != nil {
		t.Fatal(err)
	}
	s.there(s.uploads, sourceKey(id), true)
}
