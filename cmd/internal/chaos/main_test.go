//go:build unix

package chaos

import (
	"context"
	"os"
	"testing"

	"github.com/holdfastdev/holdfast/internal/pgtest"
)

// First arguments with which these tests start their own binary as a child process.
const (
	asChild    = "chaos-child"
	asMatrix   = "chaos-matrix"
	asFullDisk = "chaos-full"
	asLocker   = "chaos-locker"
)

func TestMain(m *testing.M) {
	roles := map[string]func(string){
		asChild:    func(text string) { Child(context.Background(), text, nil) },
		asMatrix:   scenarioMain,
		asFullDisk: fullDiskMain,
		asLocker:   lockerMain,
	}
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2])
		os.Exit(0)
	}
	pgtest.Main(m)
}
