package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/holdfastdev/holdfast/apps/internal/keyring"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
)

// keys implements `convert key ...`: API keys for programs.
func keys(ctx context.Context, set settings, args []string, out io.Writer, log *slog.Logger) (err error) {
	if err := setting.MakeFolder(set.Store); err != nil {
		return err
	}
	a, err := open(ctx, set, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	err = keyring.Command(ctx, a.operator, args, out, "convert key")
	if errors.Is(err, keyring.ErrUsage) {
		err = fmt.Errorf("%w: %w", err, errUsage)
	}
	return err
}
