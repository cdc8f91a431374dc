package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const log = `7 openat(AT_FDCWD, "\x2f\x64\x2f\x61", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 5
7 pwrite64(5, "\x41\x41", 2, 0) = 2
8 openat(AT_FDCWD, "\x2f\x65\x6c\x73\x65", O_RDONLY) = 6
7 fsync(5 <unfinished ...>
8 write(6, "\x21", 1) = 1
7 <... fsync resumed>)              = 0
7 pwrite64(5, "\x42", 1, 1 <unfinished ...>
8 +++ exited with 0 +++
7 <... pwrite64 resumed>)           = 1
`

func TestWhatWasSyncedSurvivesEveryCutAndTheRestOnlySome(t *testing.T) {
	r := newReplay("/d")
	if err := calls(strings.NewReader(log), func(c call) error { r.follow(c); return nil }); err != nil {
		t.Fatal(err)
	}
	if r.synced != 1 || r.writes != 2 {
		t.Fatalf("%d syncs and %d writes were seen; want 1 and 2", r.synced, r.writes)
	}
	seen := map[string]int{}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		dir := t.TempDir()
		if err := r.disk.cut(dir, random); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		seen[string(text)]++
	}
	if len(seen) != 2 || seen["AA"] == 0 || seen["AB"] == 0 {
		t.Errorf("the cuts left %v; want AA now and then, AB now and then, and nothing else", seen)
	}
}

func TestAFileWhoseNameWasNeverSyncedMayBeGone(t *testing.T) {
	d := newDisk()
	f := d.open("/d/a", true, false)
	f.since = append(f.since, change{data: []byte("x")})
	random := rand.New(rand.NewPCG(1, 2))
	gone := 0
	for range 50 {
		dir := t.TempDir()
		if err := d.cut(dir, random); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
			gone++
		}
	}
	if gone == 0 || gone == 50 {
		t.Errorf("it was gone %d times of 50", gone)
	}
}

func TestATornWriteLosesWholeSectors(t *testing.T) {
	f := &file{since: []change{{offset: 500, data: make([]byte, 600)}}}
	if got := len(f.torn(1, rand.New(rand.NewPCG(1, 2)))); got != 1100 {
		t.Errorf("with every sector through the file has %d bytes; want 1100", got)
	}
	if got := len(f.torn(0, rand.New(rand.NewPCG(1, 2)))); got != 0 {
		t.Errorf("with no sector through the file has %d bytes; want none", got)
	}
	if f.size() != 1100 {
		t.Errorf("a process would see %d bytes; want 1100", f.size())
	}
}
