// Command powerloss tests that acknowledged work survives a power cut and a full disk on SQLite.
//
// A writer process runs under strace, which logs every write and every fsync with its data. The command then rebuilds
// the files as they might be after a power cut at many random points of that log: everything that was synced by then,
// and a random choice of the 512-byte sectors that were written and not synced. It opens each result and looks for
// everything that was acknowledged. Copying the files of a killed process would prove less, because the operating
// system still has data that is not on the disk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	points := flag.Int("points", 200, "number of power cuts")
	rounds := flag.Int("rounds", 500, "number of rounds of the writer")
	seed := flag.Uint64("seed", 0, "seed of the cuts; 0 picks one and prints it")
	play := flag.String("play", "", "internal: role of a child process")
	dir := flag.String("dir", "", "internal: folder of a child process")
	flag.Parse()
	ctx := context.Background()
	var err error
	switch *play {
	case "":
		err = prove(ctx, *points, *rounds, *seed)
	case "write":
		err = write(ctx, *dir, *rounds)
	case "fill":
		err = fill(ctx, *dir)
	default:
		err = fmt.Errorf("unknown role %q", *play)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "powerloss:", err)
		os.Exit(1)
	}
}

func prove(ctx context.Context, points, rounds int, seed uint64) error {
	if runtime.GOOS != "linux" {
		return errors.New("strace works on Linux only: run this there, or in a container")
	}
	if err := ensureStrace(); err != nil {
		return err
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "holdfast-powerloss-")
	if err != nil {
		return fmt.Errorf("cannot create a temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	log, err := traced(dir, rounds)
	if err != nil {
		return err
	}
	outcome, err := cut(ctx, dir, log, points, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		return err
	}
	fmt.Printf("power loss: %d cuts in a log of %d writes and %d syncs, up to %d acknowledgements each: %d lost, %d damaged (seed %d)\n",
		points, outcome.writes, outcome.syncs, outcome.acknowledged, outcome.lost, outcome.damaged, seed)
	for _, violation := range outcome.violations {
		fmt.Println(" ", violation)
	}
	err = fullDisk(dir)
	if outcome.lost+outcome.damaged > 0 {
		err = errors.Join(err, errors.New("acknowledged work was lost"))
	}
	return err
}

// ensureStrace finds strace, or installs Debian's package if it runs as root.
func ensureStrace() error {
	if _, err := exec.LookPath("strace"); err == nil {
		return nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return errors.New("strace is missing: install it (Debian: apt-get install strace) and run this again")
	}
	cmd := exec.Command(apt, "install", "-y", "-q", "strace")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("strace is missing, and apt-get cannot install it: %w\n%s", err, out)
	}
	return nil
}

// traced runs the writer under strace and returns the path of its log.
func traced(dir string, rounds int) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find the path of this program: %w", err)
	}
	log := filepath.Join(dir, "log")
	cmd := exec.Command("strace", "-f", "-xx", "-s", "10000000", "-e", "signal=none", "-o", log,
		"-e", "trace=open,openat,creat,close,write,pwrite64,ftruncate,fsync,fdatasync,unlink,unlinkat,rename,renameat,renameat2",
		self, "-play", "write", "-dir", filepath.Join(dir, "live"), "-rounds", fmt.Sprint(rounds))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the writer failed under strace: %w\n%s", err, out)
	}
	return log, nil
}

// fullDisk fills a disk of a few megabytes, which needs the right to mount one.
func fullDisk(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the path of this program: %w", err)
	}
	disk := filepath.Join(dir, "disk")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		return fmt.Errorf("cannot create a folder for the small disk: %w", err)
	}
	script := `mount -t tmpfs -o size=3m tmpfs "$2" || exit 7; exec "$1" -play fill -dir "$2"`
	out, err := exec.Command("unshare", "-m", "sh", "-c", script, "sh", self, disk).CombinedOutput()
	text := strings.TrimSpace(string(out))
	var exit *exec.ExitError
	if errors.Is(err, exec.ErrNotFound) || errors.As(err, &exit) && (exit.ExitCode() == 7 || strings.Contains(text, "unshare")) {
		fmt.Println("full disk: skipped, mounting a small disk is not permitted here; go test -C cmd ./internal/chaos tests a limit on file sizes instead")
		return nil
	}
	fmt.Println(text)
	if err != nil {
		return fmt.Errorf("the test with a full disk failed: %w", err)
	}
	return nil
}
