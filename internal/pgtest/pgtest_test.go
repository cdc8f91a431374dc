package pgtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_DIE") != "" {
		dieWithServer()
	}
	Main(m)
}

func TestEveryTestGetsAnEmptyDatabaseOfItsOwn(t *testing.T) {
	one, two := Database(t), Database(t)
	if one == two {
		t.Fatalf("two tests share %s", one)
	}
	ask(t, one, "CREATE TABLE mine (n int)")
	if n := ask(t, two, "SELECT count(*)::text FROM pg_tables WHERE tablename = 'mine'"); n != "0" {
		t.Fatalf("the second database has the first one's table")
	}
}

func TestADurableServerKeepsItsDataAndPortOverACrash(t *testing.T) {
	s, err := Start("", Options{Durable: true, Settings: map[string]string{"shared_buffers": "16MB"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	url, err := s.Create("kept")
	if err != nil {
		t.Fatal(err)
	}
	if on := ask(t, url, "SHOW fsync"); on != "on" {
		t.Fatalf("fsync is %s on a durable server", on)
	}
	ask(t, url, "CREATE TABLE mine AS SELECT 7 AS n")
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	if n := ask(t, url, "SELECT n::text FROM mine"); n != "7" {
		t.Fatalf("after a crash the row reads %q", n)
	}
	if err := s.Stop(false); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(false); err != nil {
		t.Fatalf("stopping twice: %v", err)
	}
}

// TestAServerEndsWithTheProcessThatStartedIt runs this test program again as a child that starts a server and kills
// itself without any goodbye.
func TestAServerEndsWithTheProcessThatStartedIt(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "PGTEST_DIE=1", "TEST_DATABASE_URL=")
	out, _ := child.Output()
	url := strings.TrimSpace(string(out))
	if !strings.HasPrefix(url, "postgres://") {
		t.Fatalf("the child did not start a server: %q", out)
	}
	// Where the kernel makes no promise, removing the leftovers is what ends the server.
	removeLeftovers(os.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := pgx.Connect(ctx, url)
		if err != nil && ctx.Err() == nil {
			break
		}
		if err != nil {
			t.Fatal("the server outlived its starter")
		}
		c.Close(ctx)
		<-again.C
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+pid(child)+"-*")); len(left) > 0 {
		t.Fatalf("%s is left behind", left)
	}
}

func TestAMissingServerIsNamedWithTheWayToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := install(); err == nil || !strings.Contains(err.Error(), "apt-get") {
		t.Fatalf("without apt-get, install says %v", err)
	}
}

func TestTheNewestPackageIsPreferred(t *testing.T) {
	if newestFirst("/usr/lib/postgresql/9/bin", "/usr/lib/postgresql/17/bin") <= 0 {
		t.Fatal("9 is taken for newer than 17")
	}
}

func TestATemplatePreparesOnceAndEveryTestGetsACopyOfItsOwn(t *testing.T) {
	prepared := 0
	m := Template{Prepare: func(url string) error {
		prepared++
		return run(url, "CREATE TABLE given (n int)")
	}}
	one, two := m.Database(t), m.Database(t)
	ask(t, one, "INSERT INTO given VALUES (1)")
	if n := ask(t, two, "SELECT count(*)::text FROM given"); n != "0" || prepared != 1 {
		t.Fatalf("the second copy has %s rows, and the template was prepared %d times", n, prepared)
	}
}
