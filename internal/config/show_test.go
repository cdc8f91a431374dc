package config_test

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/internal/config"
)

func TestNoFormOfAnAddressShowsAPassword(t *testing.T) {
	for _, address := range []string{
		"postgres://ada:SECRETPW@db/jobs", "postgres://ada:SECRETPW@a:1,b:2/jobs", "postgres://db/jobs?password=SECRETPW", "postgres://db/jobs?sslpassword=SECRETPW&sslmode=require", "postgres://ada:SECRETPW@db:port/jobs",
		"host=db password=SECRETPW", "password=SECRETPW", "dbname=jobs password = 'SECRETPW'", "Host=db Password=SECRETPW",
		"postgres:ada:SECRETPW@db", "postgres:/ada:SECRETPW@db", "postgresql:SECRETPW", "ada:SECRETPW@db/jobs", "postgres://ada:SECRETPW%@db",
		"nats://SECRETPW@a:4222", "nats://ada:SECRETPW@a:4222,nats://ada:SECRETPW@b:4222", "nats://a:4222,ada:SECRETPW@b", "http://gateway/?access_token=SECRETPW",
		"postgres//ada:SECRETPW@db/jobs", "//ada:SECRETPW@db/jobs", "a:SECRETPW@db/jobs", "http//ada:SECRETPW@gateway", "http://ada:SECRETPW@gateway:4747", "hf_57a88aad6b60_SECRETPW",
	} {
		if shown := config.Redacted(address); strings.Contains(shown, "SECRETPW") {
			t.Errorf("%s is shown as %s", address, shown)
		}
	}
	for address, want := range map[string]string{
		"jobs.db": "jobs.db", `C:\jobs\a@b.db`: `C:\jobs\a@b.db`, "sqlite:jobs.db": "sqlite:jobs.db", "/srv/a:b@c.db": "/srv/a:b@c.db", "postgres://ada@db/jobs": "postgres://ada@db/jobs",
		"postgres://ada:SECRETPW@db/jobs": "postgres://ada:xxxxx@db/jobs", "jobs.db?min_free=1": "jobs.db?min_free=1",
	} {
		if shown := config.Redacted(address); shown != want {
			t.Errorf("%s is shown as %s, wanted %s", address, shown, want)
		}
	}
}
