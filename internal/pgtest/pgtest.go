// Package pgtest gives tests a real PostgreSQL. A test asks for a database and gets a fresh, empty one; where the server
// comes from is this package's business, in this order: the one named by TEST_DATABASE_URL, one started from the
// binaries on this machine, or, as root on Debian and its kin, one started from the package it installs first. It never
// skips a test: without any of these the test fails and says what is missing.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// address names the variable under which a runner offers a server of its own. Its user must be allowed to create
// databases.
const address = "TEST_DATABASE_URL"

// patience bounds what is normally done in well under a second, on a machine that may be very busy.
const patience = 2 * time.Minute

// shared is the one server of this test process. It starts with the first Database.
var shared struct {
	sync.Mutex
	base      string // the URL of a database from which others are created
	server    *Server
	templates []string // databases that templates made on a server of the runner
	err       error
}

// Main runs the tests of a package and then stops the server, if any test asked for one:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// A package that leaves it out, or a test process that dies, does not leave a server behind either: see [Start].
func Main(m *testing.M, after ...func()) {
	code := m.Run()
	for _, end := range after {
		end()
	}
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func stopShared() error {
	shared.Lock()
	defer shared.Unlock()
	server, base, templates := shared.server, shared.base, shared.templates
	shared.server, shared.base, shared.templates = nil, "", nil
	if server != nil {
		return server.Close()
	}
	var all []error
	for _, name := range templates {
		all = append(all, drop(base, name))
	}
	return errors.Join(all...)
}

// Database answers the URL of a database that is empty and this test's alone. It is dropped when the test ends, and
// connections left open then are cut. Inside a testing/synctest bubble call it before the bubble begins.
func Database(t testing.TB) string {
	t.Helper()
	return database(t, "TEMPLATE template0 ENCODING 'UTF8'")
}

// database makes a database with these options of CREATE DATABASE for one test.
func database(t testing.TB, options string) string {
	t.Helper()
	base, err := sharedBase()
	if err != nil {
		t.Fatal(err)
	}
	name := "holdfast_" + random()
	if err := run(base, "CREATE DATABASE "+name+" "+options); err != nil {
		t.Fatalf("pgtest: no database for this test: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(base, name); err != nil {
			t.Logf("pgtest: database %s is left behind: %v", name, err)
		}
	})
	made, err := within(base, name)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func drop(base, name string) error { return run(base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") }

// sharedBase starts the shared server once. A failure is remembered, so that a hundred tests do not wait for it a
// hundred times.
func sharedBase() (string, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.base != "" || shared.err != nil {
		return shared.base, shared.err
	}
	if given := os.Getenv(address); given != "" {
		if _, shared.err = within(given, "x"); shared.err == nil {
			shared.base = given
		}
		return shared.base, shared.err
	}
	shared.server, shared.err = Start("", Options{})
	if shared.err == nil {
		shared.base = shared.server.URL("postgres")
	}
	return shared.base, shared.err
}

// within is the same server's URL for another database.
func within(base, database string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "", fmt.Errorf("pgtest: %s must be a URL that begins with postgres://", address)
	}
	u.Path = "/" + database
	return u.String(), nil
}

func run(url, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

func random() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
