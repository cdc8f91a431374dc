package spool_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

func open(t *testing.T, dir string, quota int64) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir, quota)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func write(t *testing.T, s *spool.Spool, name string, size int64, text []byte) spool.File {
	t.Helper()
	w, err := s.Create(name, size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	f, err := w.Commit(map[string]string{"of": name})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// verdict returns what the engine decides about an error.
func verdict(err error) failure.Verdict {
	return failure.Decide(failure.Rules{Taxonomy: code.Taxonomy(), Policy: code.Limits{}.Policy()}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", want)
	}
	if got := verdict(err).Failure.Code; got != want {
		t.Errorf("the code is %s, want %s: %v", got, want, err)
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestACompleteFileIsFoundAlsoAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	text := []byte(strings.Repeat("resource ", 1000))
	f := write(t, s, "job-1", int64(len(text)), text)
	sum := sha256.Sum256(text)
	if f.Size != int64(len(text)) || f.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v", f)
	}
	for range 2 {
		found, err := s.Find("job-1")
		if err != nil || found.SHA256 != f.SHA256 || string(found.Note) != `{"of":"job-1"}` {
			t.Fatalf("%+v, %v", found, err)
		}
		if got, err := os.ReadFile(found.Path); err != nil || !bytes.Equal(got, text) {
			t.Fatal(err)
		}
		if u := s.Usage(); u.Files != 1 || u.Bytes != int64(len(text)) {
			t.Errorf("%+v", u)
		}
		_ = s.Close()
		s = open(t, dir, 1<<20)
	}
	if err := s.Remove("job-1"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Find("job-1")
	wantCode(t, err, code.StorageSpoolLost)
	if left := files(t, dir); len(left) != 0 || s.Usage().Bytes != 0 {
		t.Errorf("%v, %+v", left, s.Usage())
	}
}

// A process that is killed leaves an unfinished file, a body without its description, or a description that was not named yet.
func TestUnfinishedFilesOfAKilledProcessAreDeleted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	write(t, s, "whole", 5, []byte("whole"))
	w, err := s.Create("half", 100)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("half"))
	_ = s.Close()
	for _, name := range []string{"body-only.body", "note-only.json", "whole.json.part"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("not of a spool"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 1<<20)
	if left := files(t, dir); fmt.Sprint(left) != "[README whole.body whole.json]" || s.Usage().Bytes != 5 {
		t.Errorf("%v, %+v", left, s.Usage())
	}
}

func TestAFileThatWasDamagedWhileNoProcessRanIsLost(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"other bytes": func(path string) error { return os.WriteFile(path, []byte("WHOLE"), 0o600) },
		"cut":         func(path string) error { return os.Truncate(path, 2) },
		"gone":        os.Remove,
	} {
		dir := t.TempDir()
		s := open(t, dir, 1<<20)
		f := write(t, s, "whole", -1, []byte("whole"))
		_ = s.Close()
		if err := damage(f.Path); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, 1<<20)
		_, err := s.Find("whole")
		wantCode(t, err, code.StorageSpoolLost)
		if left := files(t, dir); len(left) != 0 || s.Usage().Bytes != 0 {
			t.Errorf("%s: %v, %+v", name, left, s.Usage())
		}
	}
}

func TestTheQuotaHoldsOverAllFilesAndCostsNoAttempt(t *testing.T) {
	s := open(t, t.TempDir(), 1000)
	write(t, s, "a", 400, make([]byte, 400))
	w, err := s.Create("b", 500)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	_, err = s.Create("c", 101)
	wantCode(t, err, code.StorageSpoolFull)
	if v := verdict(err); v.To != holdfast.Queued || v.Charge != store.ChargeRelease {
		t.Errorf("a full spool costs an attempt: %+v", v)
	}
	if _, err := s.Create("huge", 1001); err == nil || verdict(err).To != holdfast.Failed {
		t.Errorf("a file that can never fit: %v", err)
	}
	if _, err := w.Write(make([]byte, 600)); err != nil { // it uses what is left
		t.Errorf("a file that is larger than expected: %v", err)
	}
	_, err = w.Write(make([]byte, 1))
	wantCode(t, err, code.StorageSpoolFull)
	w.Abort()
	if u := s.Usage(); u.Bytes != 400 || u.Files != 1 {
		t.Errorf("%+v", u)
	}
	write(t, s, "d", -1, make([]byte, 600))
	if err := s.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Bytes != 600 {
		t.Errorf("%+v", u)
	}
}

func TestAFileOfUnknownSizeThatFillsTheSpoolAloneIsTooLarge(t *testing.T) {
	s := open(t, t.TempDir(), 3<<20)
	w, err := s.Create("endless", -1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for written := 0; err == nil && written < 16<<20; written += 64 << 10 {
		_, err = w.Write(make([]byte, 64<<10))
	}
	wantCode(t, err, code.DownloadTooLarge)
}

func TestANewFileReplacesTheOldOneWhenItIsComplete(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	write(t, s, "job", -1, []byte("old"))
	w, err := s.Create("job", -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create("job", -1); err == nil {
		t.Error("two attempts write one file")
	}
	_, _ = w.Write([]byte("newer"))
	if f, err := s.Find("job"); err != nil || f.Size != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := w.Commit(nil); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if f, err := s.Find("job"); err != nil || f.Size != 5 || s.Usage().Bytes != 5 {
		t.Errorf("%+v, %v, %+v", f, err, s.Usage())
	}
	if left := files(t, dir); len(left) != 2 {
		t.Error(left)
	}
}

func TestASweepDeletesWhatIsNotKept(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	for _, name := range []string{"a", "b", "c"} {
		write(t, s, name, -1, []byte(name))
	}
	n, err := s.Sweep(func(name string) bool { return name == "b" })
	if u := s.Usage(); err != nil || n != 2 || u.Files != 1 || u.Bytes != 1 {
		t.Errorf("%d, %v, %+v", n, err, u)
	}
}

func TestTwoProcessesDoNotShareASpool(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no lock on this system
	}
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	if _, err := spool.Open(dir, 1<<20); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("the folder was opened twice: %v", err)
	}
	_ = s.Close()
	open(t, dir, 1<<20)
}

func TestBadNamesAndSettingsAreRefused(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	for _, name := range []string{"", "..", "a/b", ".hidden", "a.body", strings.Repeat("x", 101), "a b"} {
		if _, err := s.Create(name, 1); err == nil {
			t.Errorf("%q was created", name)
		}
	}
	if _, err := spool.Open(t.TempDir(), 0); err == nil {
		t.Error("no quota")
	}
	if _, err := spool.Open("", 1); err == nil {
		t.Error("no folder")
	}
	if _, err := s.Find("../etc/passwd"); err == nil {
		t.Error("found")
	}
}

func TestManyWritersKeepTheAccount(t *testing.T) {
	s := open(t, t.TempDir(), 1<<30)
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			name := fmt.Sprintf("job-%d", n%10)
			w, err := s.Create(name, int64(n))
			if err != nil {
				return // another writer has this name
			}
			_, err = w.Write(make([]byte, n*100))
			if n%3 == 0 {
				w.Abort()
			} else if _, commitErr := w.Commit(nil); errors.Join(err, commitErr) != nil {
				t.Error(err, commitErr)
			}
			if n%4 == 0 {
				_ = s.Remove(name)
			}
		})
	}
	all.Wait()
	if _, err := s.Sweep(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Files != 0 || u.Bytes != 0 {
		t.Errorf("%+v", u)
	}
}
