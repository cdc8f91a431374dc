package service

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

func (s *Service) checkBudget(context.Context, Caller, *holdfast.Job) error { return nil }
func (s *Service) noteRetry(context.Context, Caller, *holdfast.Job)         {}
