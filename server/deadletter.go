package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
)

func (s *Server) mountDeadLetters() {
	mount(s, api.ListDeadLetters, func(ctx context.Context, _ Caller, in *api.Selection) (out api.LettersOut, err error) {
		out.Letters, out.Cursor, err = s.cfg.Operator.DeadLetters(ctx, in.Filter())
		return out, err
	})
}
