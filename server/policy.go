package server

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountPolicy() {
	mount(s, api.GetPolicy, func(ctx context.Context, _ Caller, _ *struct{}) (ops.Policy, error) {
		return s.cfg.Operator.Policy(ctx)
	})
	mount(s, api.ListCodes, func(ctx context.Context, _ Caller, _ *struct{}) (api.CodesOut, error) {
		codes, err := s.cfg.Operator.Codes(ctx)
		return api.CodesOut{Codes: codes}, err
	})
	mount(s, api.ExplainPolicy, func(ctx context.Context, _ Caller, in *api.ExplainPolicyIn) (policy.Explanation, error) {
		return s.cfg.Operator.ExplainPolicy(ctx, ops.PolicyQuestion(*in))
	})
	mount(s, api.RemovePolicy, s.removePolicy)
	mountRaw(s, api.ApplyPolicy, s.applyPolicy)
}

// applyPolicy accepts a policy as JSON or as YAML.
func (s *Server) applyPolicy(w http.ResponseWriter, r *http.Request, c Caller, in *api.PolicyIn) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	plain := kind == "application/yaml" || kind == "text/yaml" || kind == "application/x-yaml"
	if plain {
		r.Header.Del("Content-Type")
	}
	body, free, err := s.bodyOf(w, r, 0)
	defer free()
	switch {
	case err != nil:
		return err
	case plain:
		in.Body.Text = string(body)
	default:
		if err := api.Unmarshal(body, &in.Body); err != nil {
			return err
		}
	}
	order := ops.PolicyRequest{Text: in.Body.Text, Codes: in.Body.Codes}
	if order.Replaces, err = versionSeen(in.Match); err != nil {
		return err
	}
	out, err := s.cfg.Operator.ApplyPolicy(r.Context(), order, c.by(in.Body.Word))
	if err == nil {
		s.answer(w, r, http.StatusOK, out)
	}
	return preconditioned(err, order.Replaces)
}

func (s *Server) removePolicy(ctx context.Context, c Caller, in *api.PolicyDrop) (nothing, error) {
	version, err := versionSeen(in.Match)
	if err == nil {
		err = s.cfg.Operator.RemovePolicy(ctx, version, c.by(in.Word()))
	}
	return nothing{}, preconditioned(err, version)
}

// versionSeen is the version in an If-Match header; 0 if any version is accepted.
func versionSeen(match string) (int, error) {
	text, err := seen(match)
	if err != nil || text == "" {
		return 0, err
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return 0, &holdfast.Error{Err: holdfast.ErrInvalid, Message: `If-Match is not valid: send the version of the policy in quotes, such as "3"`}
	}
	return version, nil
}

// preconditioned turns a conflict about the version into ErrPrecondition.
func preconditioned(err error, version int) error {
	if version > 0 && errors.Is(err, holdfast.ErrConflict) {
		return &holdfast.Error{Err: api.ErrPrecondition, Message: err.Error()}
	}
	return err
}
