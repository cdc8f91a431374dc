package api

import (
	"github.com/holdfastdev/holdfast/key"
	"github.com/holdfastdev/holdfast/ops"
)

// PolicyIn applies a policy.
type PolicyIn struct {
	Asked
	Body PolicyBody
}

// PolicyBody is a policy.
type PolicyBody struct {
	Word
	Text string `json:"text" doc:"the policy, as YAML"`
}

// The routes of the policy.
var (
	GetPolicy   = Route[struct{}, ops.Policy]{Name: "get-policy", Method: "GET", Path: "/policy", Scope: key.Viewer, Tag: "policy", About: "The policy that workers follow."}
	ApplyPolicy = Route[PolicyIn, ops.Policy]{Name: "apply-policy", Method: "PUT", Path: "/policy", Scope: key.Admin, Tag: "policy", About: "Have workers follow a policy within seconds. One that makes no sense is refused whole. YAML is taken too, as application/yaml."}
)
