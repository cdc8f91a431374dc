package server

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestOnlyKeysThatCanEditReadWhatAnEditReplaced(t *testing.T) {
	s := newGateScene(t)
	draft := holdfast.Draft{ID: holdfast.NewID(), Kind: "mail", Owner: "bob", Args: []byte(`{"password":"old-word"}`)}
	if _, err := s.store.Enqueue(t.Context(), []holdfast.Draft{draft}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.operator.Edit(t.Context(), store.Edit{Intervention: store.Intervention{Job: draft.ID, Actor: "ada"}, Patch: []byte(`{"password":null}`)}); err != nil {
		t.Fatal(err)
	}
	for who, reads := range map[string]bool{"viewer": false, "worker": false, "operator": true, "own": true, "foreign": false, "admin": true} {
		var said strings.Builder
		for _, path := range []string{"", "/history", "/story", "/explain"} {
			said.WriteString(s.ask(who, "GET", "/v1/jobs/"+draft.ID.String()+path, "").body)
		}
		said.WriteString(s.ask(who, "POST", "/v1/store/history", `{"id":"`+draft.ID.String()+`"}`, "Content-Type", "application/json").body)
		said.WriteString(s.ask(who, "GET", "/v1/audit", "").body)
		if strings.Contains(said.String(), "old-word") != reads {
			t.Errorf("%s reads the former arguments: %v, want %v\n%s", who, !reads, reads, said.String())
		}
		if who != "worker" && who != "foreign" && !strings.Contains(s.ask(who, "GET", "/v1/jobs/"+draft.ID.String()+"/story", "").body, "args.password") {
			t.Errorf("%s does not see that the password was changed", who)
		}
	}
}
