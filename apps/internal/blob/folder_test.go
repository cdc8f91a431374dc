package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func openHere(t *testing.T, place string) *folder {
	t.Helper()
	s, err := Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*folder)
}

func TestAFolderKeepsTheLaws(t *testing.T) {
	keepLaws(t, func(t *testing.T) Store { return openHere(t, filepath.Join(t.TempDir(), "made", "on the way")) })
}

func TestAFolderWithoutLinksKeepsTheLaws(t *testing.T) {
	keepLaws(t, func(t *testing.T) Store { return withoutLinks(openHere(t, t.TempDir())) })
}

// withoutLinks is a folder on a file system such as FAT.
func withoutLinks(f *folder) *folder {
	f.link = func(_ *os.Root, from, to string) error {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EPERM}
	}
	return f
}

func TestAFileOfFiftyMegabytesNeedsNoMemoryInAFolder(t *testing.T) {
	flat(t, openHere(t, t.TempDir()), 16<<20)
}

func TestAProcessThatIsKilledLeavesAtMostAPart(t *testing.T) {
	dir := t.TempDir()
	killed(t, dir, nil)
	f := openHere(t, dir)
	if _, err := f.Stat(t.Context(), "victim.pdf"); !errors.Is(err, ErrNotFound) {
		t.Errorf("half a file is there: %v", err)
	}
	for info, err := range f.Older(t.Context(), time.Hour, "") {
		t.Errorf("%+v, %v: it is too young to be listed", info, err)
	}
	parts := 0
	for info, err := range f.Older(t.Context(), -time.Hour, "") {
		if parts++; err != nil || !info.Part || info.Size != 1<<20 {
			t.Errorf("%+v, %v", info, err)
		}
		if _, err := f.Open(t.Context(), info.Key); err == nil {
			t.Error("a part was opened")
		}
		if err := f.Delete(t.Context(), info.Key); err != nil {
			t.Error(err)
		}
	}
	if parts != 1 {
		t.Errorf("%d parts are left", parts)
	}
	nothingLeft(t, f)
	put(t, f, "victim.pdf", []byte("the key is free"))
}

func TestAMissingFolderIsAnErrorUntilItExistsAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	f := openHere(t, dir)
	put(t, f, "a57.pdf", []byte("text"))
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	_, put1 := f.Put(t.Context(), "b57.pdf", strings.NewReader("text"))
	_, stat := f.Stat(t.Context(), "a57.pdf")
	_, opened := f.Open(t.Context(), "a57.pdf")
	for _, err := range []error{put1, stat, opened, f.Delete(t.Context(), "a57.pdf")} {
		if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "is missing") || strings.Contains(err.Error(), dir) {
			t.Errorf("the folder is missing: %v", err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was created where a disk was mounted: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, f, "b57.pdf", []byte("an empty folder in its place is as good"))
	if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".away", dir)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, f, "a57.pdf"); string(got) != "text" {
		t.Errorf("it came back with %q", got)
	}
}

func TestFilesAreSpreadByTheEndsOfTheirNames(t *testing.T) {
	dir := t.TempDir()
	f := openHere(t, dir)
	put(t, f, "0189aaaa.pdf", nil)
	put(t, f, "in/0189aabb.pdf", nil)
	put(t, f, "x", nil)
	for _, name := range []string{"aa/0189aaaa.pdf", "bb/in/0189aabb.pdf", "x/x"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestOtherFilesInTheFolderAreNotTouched(t *testing.T) {
	dir := t.TempDir()
	f := openHere(t, dir)
	put(t, f, "0189aaaa.pdf", nil)
	for _, name := range []string{"README", ".DS_Store", "lost+found/x", "bb/0189aaaa.pdf", "aa/NOTES.pdf", "aa/sub/other"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("text"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(t, f, ""); len(got) != 1 || got[0] != "0189aaaa.pdf" {
		t.Errorf("listed are %v", got)
	}
}

func TestNothingLeadsOutOfAFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // links need a privilege there
	}
	dir, outside := t.TempDir(), t.TempDir()
	f := openHere(t, dir)
	if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "57")), os.WriteFile(filepath.Join(outside, "a57.pdf"), []byte("secret"), 0o600),
		os.Mkdir(filepath.Join(dir, "58"), 0o700), os.Symlink(filepath.Join(outside, "a57.pdf"), filepath.Join(dir, "58", "a58.pdf"))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Put(t.Context(), "b57.pdf", strings.NewReader("text")); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("a file was put outside: %v", err)
	}
	for _, key := range []string{"a57.pdf", "a58.pdf"} {
		if file, err := f.Open(t.Context(), key); err == nil {
			t.Errorf("%s was read from outside: %v", key, file.Info)
		}
	}
	if err := f.Delete(t.Context(), "a57.pdf"); err == nil {
		if _, err := os.Stat(filepath.Join(outside, "a57.pdf")); err != nil {
			t.Errorf("a file outside was deleted: %v", err)
		}
	}
}

func TestAStaleReservationIsRemoved(t *testing.T) {
	dir := t.TempDir()
	f := withoutLinks(openHere(t, dir))
	put(t, f, "a57.pdf", nil)
	reserved := filepath.Join(dir, "57", ".b57.pdf.reserved")
	if err := os.WriteFile(reserved, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Put(t.Context(), "b57.pdf", strings.NewReader("text")); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("a reserved name: %v", err)
	}
	long := time.Now().Add(-2 * staleReservation)
	if err := os.Chtimes(reserved, long, long); err != nil {
		t.Fatal(err)
	}
	_, _ = f.Put(t.Context(), "b57.pdf", strings.NewReader("text"))
	put(t, f, "b57.pdf", []byte("text"))
}

// Document 000 section 10: an error says that the disk is full, or that permissions are missing, and contains no path.
func TestFolderErrorsSayWhatToDoAndContainNoPath(t *testing.T) {
	for err, word := range map[error]string{syscall.ENOSPC: "free space", syscall.EDQUOT: "quota", syscall.EROFS: "read-only", syscall.EACCES: "write permission", syscall.ENOENT: "mount it", syscall.EIO: "cannot write a file"} {
		got := folderError("cannot write a file", &fs.PathError{Op: "write", Path: "/somewhere/private", Err: err})
		if !strings.Contains(got.Error(), word) || strings.Contains(got.Error(), "private") || !errors.Is(got, err) {
			t.Errorf("%v becomes: %v", err, got)
		}
		if full := err == syscall.ENOSPC || err == syscall.EDQUOT; errors.Is(got, ErrFull) != full {
			t.Errorf("%v: full is %v", err, !full)
		}
	}
}

func TestInvalidAddressesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	for place, word := range map[string]string{"": "use a folder", file: "is a file", filepath.Join(file, "below"): "is a file", "ftp://host/x": "s3://bucket/prefix", "s3://": "is not a valid bucket name", "s3://A_b/x": "is not a valid bucket name",
		"s3://bucket/../x": "is not a valid key", "s3://bucket": "AWS_ACCESS_KEY_ID"} {
		if _, err := Open(t.Context(), place); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v", place, err)
		}
	}
}
