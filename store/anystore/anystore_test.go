package anystore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestAStoreThatCannotBeOpenedIsNil(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{
		"a folder that is missing": filepath.Join(dir, "no", "jobs.db"), "a folder": dir, "no SQLite file": text,
		"a database that is down": "postgres://ada:SECRETPW@127.0.0.1:1/jobs?connect_timeout=2", "a bad option": filepath.Join(dir, "jobs.db?min_free=many"),
		"no address": "", "an unknown scheme": "mysql://ada:SECRETPW@db/jobs",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := anystore.Open(t.Context(), address)
			if err == nil || s != nil {
				t.Fatalf("%v, %v: wanted nil and an error", s, err)
			}
			if said := err.Error(); strings.Contains(said, "\n") || strings.Contains(said, "SECRETPW") {
				t.Errorf("%q: wanted one line without the password", said)
			}
		})
	}
}

func TestAnAddressThatMayHoldAPasswordIsNeverTakenForAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, address := range []string{
		"host=db password=SECRETPW", "password=SECRETPW host=db", "dbname=jobs  password = SECRETPW", "PASSWORD=SECRETPW", "user=ada\tpassword='SECRETPW'",
		"postgres:ada:SECRETPW@db", "postgres:/ada:SECRETPW@db/jobs", "postgresql:ada:SECRETPW@db", "POSTGRES:ada:SECRETPW@db", "ada:SECRETPW@db/jobs", "ada:SECRETPW@tcp(db:3306)/jobs",
		"postgres://ada:SECRETPW@db:port/jobs", "postgres://ada:SECRET%PW@db/jobs", "postgres ://ada:SECRETPW@db",
		"postgres//ada:SECRETPW@db/jobs", "//ada:SECRETPW@db/jobs", "a:SECRETPW@db/jobs",
	} {
		s, err := anystore.Open(context.Background(), address)
		if s != nil || !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %v, %v", address, s, err)
			continue
		}
		if strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "postgres://") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if made, _ := filepath.Glob("*"); len(made) > 0 {
		t.Errorf("it made %q", made)
	}
}

func TestAnAddressNamesAFile(t *testing.T) {
	for address, want := range map[string]string{
		"jobs.db": "jobs.db", "./a=b.db": "./a=b.db", "sqlite:jobs.db": "jobs.db", "file:///var/jobs.db": "/var/jobs.db", "jobs.db?min_free=1": "jobs.db", `C:\jobs\me@here.db`: `C:\jobs\me@here.db`,
		"sqlite:host=a.db": "host=a.db", "/srv/a:b@c.db": "/srv/a:b@c.db", "postgres://ada@db/jobs": "", "PostgreSQL://ada@db/jobs": "",
	} {
		if path, err := anystore.File(address); err != nil || path != want {
			t.Errorf("%s: %q, %v: wanted %q", address, path, err, want)
		}
	}
}
