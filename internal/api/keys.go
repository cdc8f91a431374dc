package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast/apikey"
)

// KeysOut lists all keys.
type KeysOut struct {
	Keys []apikey.Key `json:"keys" doc:"API keys, newest first, without their secrets."`
}

// MakeKeyIn is the request for a new key.
type MakeKeyIn struct {
	Asked
	Body KeyBody
}

// KeyBody is the key to make.
type KeyBody struct {
	apikey.Request
	Word
}

// KeyMade is a new key.
type KeyMade struct {
	Key  apikey.Key `json:"key" doc:"What the server stores about the key."`
	Text string     `json:"text" doc:"The key itself. It is returned only here: the server keeps a hash."`
}

// DropKey is the request to revoke a key.
type DropKey struct {
	ID string `path:"id" doc:"Id of the key."`
	Asked
	Dropped
}

// The routes of keys.
var (
	ListKeys  = Route[struct{}, KeysOut]{Name: "list-keys", Method: "GET", Path: "/keys", Scope: apikey.Admin, Tag: "keys", About: "List API keys. Newest first, with those that were revoked or have expired."}
	MakeKey   = Route[MakeKeyIn, KeyMade]{Name: "make-key", Method: "POST", Path: "/keys", Scope: apikey.Admin, Tag: "keys", About: "Create an API key. The key is returned only in this answer.", Status: http.StatusCreated}
	RevokeKey = Route[DropKey, Nothing]{Name: "revoke-key", Method: "DELETE", Path: "/keys/{id}", Scope: apikey.Admin, Tag: "keys", About: "Revoke an API key. Every server refuses it within a second. Errors: not_found (no such key)."}
)
