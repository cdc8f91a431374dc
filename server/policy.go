package server

import (
	"context"
	"mime"
	"net/http"

	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountPolicy() {
	mount(s, api.GetPolicy, func(ctx context.Context, _ Caller, _ *struct{}) (ops.Policy, error) {
		return s.cfg.Desk.Policy(ctx)
	})
	mountRaw(s, api.ApplyPolicy, s.applyPolicy)
}

// applyPolicy takes a policy in JSON, or as the text it is.
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
	out, err := s.cfg.Desk.ApplyPolicy(r.Context(), in.Body.Text, c.by(in.Body.Word))
	if err == nil {
		s.answer(w, r, http.StatusOK, out)
	}
	return err
}
