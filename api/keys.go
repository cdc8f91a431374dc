package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast/apikey"
)

// KeysOut are all keys.
type KeysOut struct {
	Keys []apikey.Key `json:"keys" doc:"without their secrets"`
}

// MakeKeyIn orders a key.
type MakeKeyIn struct {
	Asked
	Body KeyBody
}

// KeyBody says what for.
type KeyBody struct {
	apikey.Order
	Word
}

// KeyMade is a key that was made.
type KeyMade struct {
	Key  apikey.Key `json:"key"`
	Text string     `json:"text" doc:"the key itself: it is told this once and kept nowhere"`
}

// DropKey ends a key.
type DropKey struct {
	ID string `path:"id" doc:"the key"`
	Asked
	Dropped
}

// The routes of keys.
var (
	ListKeys  = Route[struct{}, KeysOut]{Name: "list-keys", Method: "GET", Path: "/keys", Scope: apikey.Admin, Tag: "keys", About: "Keys, the newest first, also those that were revoked or have expired."}
	MakeKey   = Route[MakeKeyIn, KeyMade]{Name: "make-key", Method: "POST", Path: "/keys", Scope: apikey.Admin, Tag: "keys", About: "Make a key. It is shown this once.", Status: http.StatusCreated}
	RevokeKey = Route[DropKey, Nothing]{Name: "revoke-key", Method: "DELETE", Path: "/keys/{id}", Scope: apikey.Admin, Tag: "keys", About: "End a key. It is refused within a second."}
)
