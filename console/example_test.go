package console_test

import (
	"net/http"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// serve mounts the console in an application that has its own sign-in.
func serve(db store.Store, signedIn func(*http.Request) (name string, err error)) error {
	mux := http.NewServeMux()
	// README start
	pages, err := console.New(console.Config{
		Operator: ops.New(db, ops.Config{}),
		Prefix:   "/ops/jobs",
		Who: func(r *http.Request) (console.Visitor, error) {
			name, err := signedIn(r) // your own: an error keeps the visitor out, and is shown
			return console.Visitor{Name: name, Scope: apikey.Operator}, err
		},
	})
	if err != nil {
		return err
	}
	defer pages.Close()
	mux.Handle("/ops/jobs/", pages)
	// README end
	return http.ListenAndServe("127.0.0.1:8080", mux)
}

func ExampleNew() {
	_ = serve
}
