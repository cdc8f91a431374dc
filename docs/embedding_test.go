package docs_test

import (
	"net/http"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
)

// The part of embedding.md that the shop does not have: a sign-in.

func signedIn(*http.Request) (name string, admin bool, err error) { return "ada", false, nil }

// README start who
func who(r *http.Request) (console.Visitor, error) {
	name, admin, err := signedIn(r) // your own: an error keeps the visitor out, and is shown
	scope := apikey.Viewer
	if admin {
		scope = apikey.Operator
	}
	return console.Visitor{Name: name, Scope: scope}, err
}

// README end

func Example_console() {
	pages, err := console.New(console.Config{Who: who, Prefix: "/ops/jobs"})
	must(err)
	pages.Close()
}
