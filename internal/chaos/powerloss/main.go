// Command powerloss shows that acknowledged work survives a power cut and a full disk on SQLite.
//
// A real writer runs under strace, which logs every write and every fsync with its data. The files are then rebuilt as
// they might look after a power cut at many random points of that log: what was synced by then, plus a random choice of
// the 512-byte sectors that were written and not synced. Each is opened and asked for everything that had been
// acknowledged. Copying the files of a killed process would prove less: the operating system remembers what the disk
// does not.
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
	points := flag.Int("points", 200, "how many power cuts")
	rounds := flag.Int("rounds", 500, "how much the writer writes")
	seed := flag.Uint64("seed", 0, "of the cuts; 0 draws one and says which")
	play := flag.String("play", "", "for its own use: the part of a child process")
	dir := flag.String("dir", "", "for its own use: where the child works")
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
		err = fmt.Errorf("no part is called %q", *play)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "powerloss:", err)
		os.Exit(1)
	}
}

func prove(ctx context.Context, points, rounds int, seed uint64) error {
	if runtime.GOOS != "linux" {
		return errors.New("strace logs what a process writes on Linux only: run this there, or in a container")
	}
	if err := ensureStrace(); err != nil {
		return err
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "holdfast-powerloss-")
	if err != nil {
		return fmt.Errorf("no folder to work in: %w", err)
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
	for _, trouble := range outcome.troubles {
		fmt.Println(" ", trouble)
	}
	err = fullDisk(dir)
	if outcome.lost+outcome.damaged > 0 {
		err = errors.Join(err, errors.New("acknowledged work was lost"))
	}
	return err
}

// ensureStrace finds strace, or installs Debian's package where it may.
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
		return fmt.Errorf("strace is missing and apt-get does not install it: %w\n%s", err, out)
	}
	return nil
}

// traced runs the writer under strace and answers where its log is.
func traced(dir string, rounds int) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("this program does not know where it is: %w", err)
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

// fullDisk lets a store run into the end of a disk of a few megabytes, which needs the right to mount one.
func fullDisk(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program does not know where it is: %w", err)
	}
	disk := filepath.Join(dir, "disk")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		return fmt.Errorf("no folder for the small disk: %w", err)
	}
	script := `mount -t tmpfs -o size=3m tmpfs "$2" || exit 7; exec "$1" -play fill -dir "$2"`
	out, err := exec.Command("unshare", "-m", "sh", "-c", script, "sh", self, disk).CombinedOutput()
	text := strings.TrimSpace(string(out))
	var exit *exec.ExitError
	if errors.Is(err, exec.ErrNotFound) || errors.As(err, &exit) && (exit.ExitCode() == 7 || strings.Contains(text, "unshare")) {
		fmt.Println("full disk: no right to mount a small disk here; the limit on file sizes stands in for it in go test ./internal/chaos")
		return nil
	}
	fmt.Println(text)
	if err != nil {
		return fmt.Errorf("the store did not get through a full disk: %w", err)
	}
	return nil
}
