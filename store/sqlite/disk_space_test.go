package sqlite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestANearlyFullDiskTakesNoNewJobsAndLetsTheOldOnesBeWorkedOff(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	left := int64(10 << 20)
	db.space = &diskSpace{min: defaultMinFree, free: func(string) (int64, bool) { return left, true }}
	for name, add := range map[string]func() error{
		"enqueue": func() error {
			_, err := db.Enqueue(context.Background(), []holdfast.Draft{{Kind: "mail"}})
			return err
		},
		"keep": func() error {
			return db.Apply(context.Background(), store.Change{Enqueue: []holdfast.Draft{{Kind: "mail"}}})
		},
	} {
		if err := add(); !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "10 MiB") || !strings.Contains(err.Error(), "min_free") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := db.mustClaim(t, 10, "default"); len(got) != 1 {
		t.Errorf("%d jobs were claimed, not the one that is there", len(got))
	}
	left = 1 << 30
	db.space.checkedAt = db.space.checkedAt.AddDate(0, 0, -1)
	db.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
}

func TestWithUnknownFreeSpaceNothingIsRefused(t *testing.T) {
	for name, s := range map[string]*diskSpace{
		"unknown": {min: defaultMinFree, free: func(string) (int64, bool) { return 0, false }},
		"off":     newDiskSpace(Config{Path: "jobs.db", MinFree: -1}),
	} {
		if err := s.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if bytes, known := freeBytes(t.TempDir()); !known || bytes <= 0 {
		t.Errorf("%d bytes are left here, known: %v", bytes, known)
	}
}

func TestAnAddressMaySetHowMuchSpaceStaysFree(t *testing.T) {
	for address, want := range map[string]Config{
		"jobs.db":             {Path: "jobs.db"},
		"why?.db":             {Path: "why?.db"},
		"jobs.db?min_free=5":  {Path: "jobs.db", MinFree: 5},
		"jobs.db?min_free=0":  {Path: "jobs.db", MinFree: -1},
		"jobs.db?min_free=-1": {},
		"jobs.db?min_free=x":  {},
		"jobs.db?other=1":     {},
	} {
		got, err := Parse(address)
		if want.Path == "" {
			if !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%s: %v", address, err)
			}
			continue
		}
		if err != nil || got.Path != want.Path || got.MinFree != want.MinFree {
			t.Errorf("%s is read as %q, %d: %v", address, got.Path, got.MinFree, err)
		}
	}
}
