package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

// PolicyIn is the request to apply a policy.
type PolicyIn struct {
	Asked
	Match string `header:"If-Match" doc:"Version of the policy that is replaced, as the caller read it, in quotes. If another version is applied, the answer is precondition_failed."`
	Body  PolicyBody
}

// PolicyBody is the policy to apply.
type PolicyBody struct {
	Word
	Text  string   `json:"text" doc:"The policy as YAML."`
	Codes []string `json:"codes,omitempty" doc:"Failure codes that the policy may name although nothing defines them."`
}

// PolicyDrop is the request to remove the applied policy.
type PolicyDrop struct {
	Asked
	Dropped
	Match string `header:"If-Match" doc:"Version of the policy that is removed, as the caller read it, in quotes. If another version is applied, the answer is precondition_failed."`
}

// ExplainPolicyIn asks which settings apply to failures. With a job, its values are used for the fields that are left out.
type ExplainPolicyIn struct {
	Kind       string      `query:"kind" doc:"Kind of the jobs. Required unless job is given."`
	Code       string      `query:"code" doc:"Failure code; any when left out."`
	Owner      string      `query:"owner" doc:"Owner of the jobs; jobs without an owner when left out."`
	Dependency string      `query:"dependency" doc:"Dependency; when left out, the one that the live workers of the kind declare."`
	Job        holdfast.ID `query:"job" doc:"Id of a job whose settings are wanted."`
}

// CodesOut lists failure codes.
type CodesOut struct {
	Codes []catalog.Entry `json:"codes" doc:"Known failure codes, by name."`
}

// The routes of policies and failure codes.
var (
	ListCodes     = Route[struct{}, CodesOut]{Name: "list-codes", Method: "GET", Path: "/codes", Scope: apikey.Viewer, Also: apikey.Worker, Tag: "policy", About: "List failure codes. Each with its definition, where that comes from (built in, published by a worker, or the applied policy), and the definitions that it overrides."}
	GetPolicy     = Route[struct{}, ops.Policy]{Name: "get-policy", Method: "GET", Path: "/policy", Scope: apikey.Viewer, Tag: "policy", About: "Get the applied policy. Includes how far the live workers follow it. Errors: not_found (no policy is applied)."}
	ApplyPolicy   = Route[PolicyIn, ops.Policy]{Name: "apply-policy", Method: "PUT", Path: "/policy", Scope: apikey.Admin, Tag: "policy", About: "Apply a policy. Workers follow it within seconds; a policy with a mistake, or with a failure code that nothing defines, is refused as a whole. The body may also be YAML (application/yaml). Errors: invalid (the detail names every mistake), precondition_failed (another version is applied than If-Match names)."}
	ExplainPolicy = Route[ExplainPolicyIn, policy.Explanation]{Name: "explain-policy", Method: "GET", Path: "/policy/explain", Scope: apikey.Viewer, Tag: "policy", About: "Explain which settings apply to a failure. For a kind, code and owner: each setting with its source, which is the job, the policy, what workers published of their policies in Go, or the built-in default. Errors: invalid (neither kind nor job is given), not_found (no such job)."}
	RemovePolicy  = Route[PolicyDrop, Nothing]{Name: "remove-policy", Method: "DELETE", Path: "/policy", Scope: apikey.Admin, Tag: "policy", About: "Remove the applied policy. Within seconds workers return to the policy of their configuration or code. Errors: not_found (no policy is applied), precondition_failed (another version is applied than If-Match names)."}
)
