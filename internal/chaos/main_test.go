//go:build unix

package chaos

import (
	"context"
	"os"
	"testing"

	"github.com/holdfastdev/holdfast/internal/pgtest"
)

// A child of these tests is this very program under another first argument.
const (
	asChild  = "chaos-child"
	asMatrix = "chaos-matrix"
	asFull   = "chaos-full"
	asLocker = "chaos-locker"
)

func TestMain(m *testing.M) {
	parts := map[string]func(string){
		asChild:  func(text string) { Child(context.Background(), text, nil) },
		asMatrix: playMatrix,
		asFull:   playFull,
		asLocker: playLocker,
	}
	if len(os.Args) == 3 && parts[os.Args[1]] != nil {
		parts[os.Args[1]](os.Args[2])
		os.Exit(0)
	}
	pgtest.Main(m)
}
