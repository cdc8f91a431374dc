package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

// PolicyIn applies a policy.
type PolicyIn struct {
	Asked
	Match string `header:"If-Match" doc:"the version that it replaces, as the caller saw it, in quotes"`
	Body  PolicyBody
}

// PolicyBody is a policy.
type PolicyBody struct {
	Word
	Text  string   `json:"text" doc:"the policy, as YAML"`
	Codes []string `json:"codes,omitempty" doc:"failure codes that the policy may name although nothing defines them"`
}

// PolicyDrop removes the applied policy.
type PolicyDrop struct {
	Asked
	Dropped
	Match string `header:"If-Match" doc:"the version that is removed, as the caller saw it, in quotes"`
}

// ExplainPolicyIn asks which settings apply to failures. What is left out is open; a job gives what is left out.
type ExplainPolicyIn struct {
	Kind       string      `query:"kind" doc:"of jobs; needed unless a job is named"`
	Code       string      `query:"code" doc:"a failure code; any when left out"`
	Owner      string      `query:"owner" doc:"whose jobs; those without an owner when left out"`
	Dependency string      `query:"dependency" doc:"what the live workers of the kind call, when left out"`
	Job        holdfast.ID `query:"job" doc:"a job whose settings are asked for"`
}

// CodesOut lists failure codes.
type CodesOut struct {
	Codes []catalog.Entry `json:"codes"`
}

// The routes of the policy.
var (
	ListCodes     = Route[struct{}, CodesOut]{Name: "list-codes", Method: "GET", Path: "/codes", Scope: apikey.Viewer, Also: apikey.Worker, Tag: "policy", About: "Every failure code that is known: its definition, the source of that (built in, published by a worker, or the policy in force), and the definitions that do not apply."}
	GetPolicy     = Route[struct{}, ops.Policy]{Name: "get-policy", Method: "GET", Path: "/policy", Scope: apikey.Viewer, Tag: "policy", About: "The policy that is applied, and how far live workers follow it."}
	ApplyPolicy   = Route[PolicyIn, ops.Policy]{Name: "apply-policy", Method: "PUT", Path: "/policy", Scope: apikey.Admin, Tag: "policy", About: "Have workers follow a policy within seconds. One that makes no sense, or that names a failure code that nothing defines, is refused whole. YAML is taken too, as application/yaml."}
	ExplainPolicy = Route[ExplainPolicyIn, policy.Explanation]{Name: "explain-policy", Method: "GET", Path: "/policy/explain", Scope: apikey.Viewer, Tag: "policy", About: "Which settings apply to failures of a kind with a code, for an owner, and the source of each: the job, the policy, what workers published of their policies in Go, or the built-in default."}
	RemovePolicy  = Route[PolicyDrop, Nothing]{Name: "remove-policy", Method: "DELETE", Path: "/policy", Scope: apikey.Admin, Tag: "policy", About: "Have workers go back, within seconds, to the policy they were given at their start, or to what is written in their code."}
)
