package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/s3test"
	"github.com/holdfastdev/holdfast/store"
)

// A fileScene is a scene whose files can be given an older time, in a folder or a bucket.
type fileScene struct {
	*scene
	dir    string // all files are below it, by their keys
	bucket bool
}

// eachFileScene checks a law with files in folders and in a bucket, on both stores.
func eachFileScene(t *testing.T, law func(s *fileScene)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		eachStore(t, func(t *testing.T, address string) {
			s := newScene(t, address)
			law(&fileScene{scene: s, dir: filepath.Dir(s.set.Uploads)})
		})
	})
	server := s3test.Start(t)
	t.Run("bucket", func(t *testing.T) {
		eachStore(t, func(t *testing.T, address string) {
			place := server.Use(t)
			s := newScene(t, address, func(set *settings) { set.Uploads, set.Results = place+"/uploads", place+"/results" })
			law(&fileScene{scene: s, dir: filepath.Join(server.Dir, strings.TrimPrefix(place, "s3://")), bucket: true})
		})
	})
}

// ages makes a file older.
func (s *fileScene) ages(key string, by time.Duration) {
	s.Helper()
	found := false
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != key {
			return err
		}
		found = true
		then := time.Now().Add(-by)
		return os.Chtimes(path, then, then)
	})
	if err != nil || !found {
		s.Fatalf("%s: found %v, %v", key, found, err)
	}
}

// lays puts a file of a given age.
func (s *fileScene) lays(among blob.Store, key string, ago time.Duration) {
	s.Helper()
	if _, err := among.Put(s.Context(), key, strings.NewReader("text of "+key)); err != nil {
		s.Fatal(err)
	}
	s.ages(key, ago)
}

// old makes the sweep's record of the store a year old.
func (s *fileScene) old() {
	s.Helper()
	body, _ := json.Marshal(sweepState{Since: time.Now().AddDate(-1, 0, 0)})
	if err := s.store.Apply(s.Context(), store.Change{Records: []store.Record{{Namespace: namespaceSweep, Name: nameSweep, Body: body}}}); err != nil {
		s.Fatal(err)
	}
}

func (s *fileScene) sweeps() {
	s.Helper()
	if err := s.sweep(s.Context()); err != nil {
		s.Errorf("the sweep: %v", err)
	}
}

func (s *fileScene) there(among blob.Store, key string, want bool) {
	s.Helper()
	if _, err := among.Stat(s.Context(), key); (err == nil) != want || err != nil && !errors.Is(err, blob.ErrNotFound) {
		s.Errorf("%s: should be there: %v; %v", key, want, err)
	}
}

// fileStates returns the states of a job's files.
func (s *fileScene) fileStates(id holdfast.ID) (source, result string) {
	s.Helper()
	f, err := s.checkFiles(s.Context(), s.job(id))
	if err != nil {
		s.Fatal(err)
	}
	return f.Source.State, f.Result.State
}

func (s *fileScene) expectFiles(id holdfast.ID, source, result string) {
	s.Helper()
	if a, b := s.fileStates(id); a != source || b != result {
		s.Errorf("the source is %s and the result %s; want %s and %s", a, b, source, result)
	}
}

// E17, C12: source and result expire separately; 000 section 2C tells an artifact that expired from one that is lost.
func TestCheckFilesReturnsTheStatesOfFiles(t *testing.T) {
	eachFileScene(t, func(s *fileScene) {
		refused := (&caller{TB: s.T, owner: "session:test"}).refused(s.scene)
		s.expectFiles(refused, fileNone, fileNone)
		first, second := s.enters(1), s.enters(2)
		s.expectFiles(first, fileAvailable, fileNone)
		s.works()
		s.becomes(first, holdfast.Complete)
		s.becomes(second, holdfast.Complete)
		s.expectFiles(first, fileAvailable, fileAvailable)
		f, err := s.checkFiles(s.Context(), s.job(first))
		if err != nil || f.Source.Size != int64(len(samplePDF(1))) || f.Result.Size == 0 {
			t.Errorf("%+v, %v", f, err)
		}
		for _, end := range []struct {
			got  time.Time
			keep time.Duration
		}{{f.Source.ExpireAt, s.set.KeepSource}, {f.Result.ExpireAt, s.set.KeepResult}} {
			if left := time.Until(end.got); left > end.keep+time.Minute || left < end.keep-time.Hour {
				t.Errorf("it expires in %v, and is kept for %v", left, end.keep)
			}
		}

		s.loses(first, artifactSource)
		s.expectFiles(first, fileExpired, fileAvailable)
		s.there(s.uploads, sourceKey(first), false)
		s.loses(first, artifactResult)
		s.expectFiles(first, fileExpired, fileExpired)
		s.there(s.results, resultKey(first), false)

		if err := errors.Join(s.uploads.Delete(s.Context(), sourceKey(second)), s.results.Delete(s.Context(), resultKey(second))); err != nil {
			t.Fatal(err)
		}
		s.expectFiles(second, fileMissing, fileMissing)
		if f, err := s.filesOf(s.Context(), s.job(second), false); err != nil || f.Source.State != fileAvailable || f.Result.State != fileAvailable {
			t.Errorf("who need not be certain goes by the store alone: %+v, %v", f, err)
		}
	})
}

// C12, with the engine's own retention: each file is deleted at the end of its own retention period, not earlier.
func TestSourceAndResultExpireIndependently(t *testing.T) {
	tell(t, func(s *scene) {
		s.works()
		id := s.enters(1)
		s.becomes(id, holdfast.Complete)
		look := func() string {
			f, err := s.checkFiles(context.Background(), s.job(id))
			if err != nil {
				t.Fatal(err)
			}
			return f.Source.State + " " + f.Result.State
		}
		expect(t, "at first", look(), "available available")
		<-time.After(59 * time.Minute)
		expect(t, "before its time", look(), "available available")
		<-time.After(3 * time.Minute)
		expect(t, "after the source's time", look(), "expired available")
		<-time.After(time.Hour)
		expect(t, "after the result's time", look(), "expired expired")
		if left := len(filesIn(t, s.set.Uploads)) + len(filesIn(t, s.set.Results)); left != 0 {
			t.Errorf("%d files are left", left)
		}
	}, func(set *settings) { set.KeepSource, set.KeepResult = time.Hour, 2*time.Hour })
}

// 000 section 4: while the breaker holds, jobs stay queued, however long that is; none may lose its PDF meanwhile.
func TestTheSourceOfALiveJobIsKeptBeyondItsRetention(t *testing.T) {
	eachFileScene(t, func(s *fileScene) {
		s.old()
		id := s.enters(1)
		s.ages(sourceKey(id), 48*time.Hour)
		s.loses(id, artifactSource)
		s.there(s.uploads, sourceKey(id), true)
		s.expectFiles(id, fileAvailable, fileNone)
		s.sweeps()
		s.expectFiles(id, fileAvailable, fileNone)

		s.works(queueConvert)
		s.becomes(id, holdfast.Complete)
		s.expectFiles(id, fileExpired, fileAvailable)
		s.sweeps()
		s.there(s.uploads, sourceKey(id), false)
		s.expectFiles(id, fileExpired, fileAvailable)
	})
}

func TestOnlyTheFilesOfTheJobItselfExpire(t *testing.T) {
	s := newScene(t, "")
	mine, other := s.enters(1), s.enters(2)
	forged := store.Artifact{Job: holdfast.NewID(), Name: artifactSource, Ref: sourceKey(other)}
	if err := s.expire(t.Context(), forged); err != nil {
		t.Error(err)
	}
	if err := s.expire(t.Context(), store.Artifact{Job: mine, Name: "logs", Ref: sourceKey(mine)}); err == nil || !strings.Contains(err.Error(), "logs") {
		t.Errorf("a file that is not ours: %v", err)
	}
	if left := filesIn(t, s.set.Uploads); len(left) != 2 {
		t.Errorf("there are %v", left)
	}
}

// C12: a file counts as expired from the promised time on, even if it is deleted some seconds later.
func TestAFileCountsAsExpiredBeforeItIsDeleted(t *testing.T) {
	now := time.Now()
	for left, want := range map[time.Duration]string{-time.Second: fileExpired, 0: fileExpired, time.Second: fileAvailable} {
		kept := []store.Artifact{{Name: artifactSource}, {Name: artifactResult, ExpireAt: now.Add(left)}}
		expect(t, fmt.Sprint("with ", left, " left"), recordedState(kept, artifactResult, now).State, want)
		expect(t, "without an end", recordedState(kept, artifactSource, now).State, fileAvailable)
	}
}
