package server

import (
	"context"

	"github.com/holdfastdev/holdfast/api"
)

func (s *Server) mountDeadLetters() {
	mount(s, api.ListDeadLetters, func(ctx context.Context, _ Caller, in *api.Selection) (out api.LettersOut, err error) {
		out.Letters, out.Cursor, err = s.cfg.Desk.DeadLetters(ctx, in.Filter())
		return out, err
	})
}
