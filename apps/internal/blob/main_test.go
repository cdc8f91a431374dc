package blob

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// victim is the environment variable that makes this test binary a process that puts a file and is killed meanwhile.
const victim = "HOLDFAST_BLOB_VICTIM"

func TestMain(m *testing.M) {
	if place := os.Getenv(victim); place != "" {
		if os.Getenv(victim+"_FULL") != "" {
			fill()
		}
		if os.Getenv(victim+"_PARTS") != "" {
			putPartsForever(place)
		}
		putForever(place)
	}
	os.Exit(m.Run())
}

// putForever puts a megabyte, prints "half", and waits for ever, or sends more slowly, until it is killed.
func putForever(place string) {
	store, err := Open(context.Background(), place)
	if err == nil {
		said := reading(func() { fmt.Println("half") })
		var rest io.Reader = waiting{}
		if os.Getenv(victim+"_WHOLE") != "" {
			rest = io.LimitReader(noise{}, 8<<20)
		}
		_, err = store.Put(context.Background(), "victim.pdf", io.MultiReader(io.LimitReader(noise{}, 1<<20), said, rest))
	}
	fmt.Println("ended", err)
	os.Exit(1)
}

// putPartsForever stores large files, one after the other, until it is killed.
func putPartsForever(place string) {
	largeFile, filePart = 6<<20, 5<<20
	store, err := Open(context.Background(), place)
	fmt.Println("half")
	for n := 0; err == nil; n++ {
		c := contentOf(content(7<<20, uint64(n)))
		c.Replace = true
		_, err = store.PutFile(context.Background(), fmt.Sprintf("large-%d", n), c)
	}
	fmt.Println("ended", err)
	os.Exit(1)
}

type waiting struct{}

func (waiting) Read([]byte) (int, error) { select {} }

// killed runs a process that puts victim.pdf at the place, waits until it is in the middle of that, and kills it.
func killed(t *testing.T, place string, middle <-chan struct{}, environment ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), victim+"="+place), environment...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "half\n" {
		t.Errorf("the process said %q, %v", line, err)
	} else if middle != nil {
		<-middle
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
