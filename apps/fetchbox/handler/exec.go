package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/kind/execjob"
)

// Exec returns a handler that runs a program (see kind/execjob for its environment, its limits and its end). The program reads the resource from its standard input, or
// from the file whose path is its last argument. Exit code 0 accepts the resource; what the program prints must then be nothing, or a JSON object of strings, which becomes
// the Meta. Any other exit code refuses the resource, with the end of standard error as the reason. The error names what is wrong with the program.
//
// A program with Limits needs execjob.Main at the beginning of main.
func Exec(p execjob.Program) (Handler, error) {
	p.Verbatim = true // its output is data
	if err := p.Check(); err != nil {
		return nil, err
	}
	return program{p}, nil
}

type program struct{ execjob.Program }

// Handle runs the program.
func (e program) Handle(ctx context.Context, in Input) (Output, error) {
	file, err := in.open()
	if err != nil {
		return Output{}, err
	}
	defer func() { _ = file.Close() }()
	result, err := e.Run(ctx, file, in.File.Path)
	exit, exited := errors.AsType[*failure.ExitError](err)
	switch {
	case err == nil:
	case exited && exit.Code > 0 && exit.Code != notExecuted:
		return Output{}, refuse(code.HandlerRefused, "the program refused the resource: %v", err)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return Output{}, &codedError{code.HandlerTimeout, err}
	default:
		return Output{}, &codedError{code.HandlerError, err}
	}
	out := Output{}
	if result.Stdout == "" {
		return out, nil
	}
	if err := json.Unmarshal([]byte(result.Stdout), &out.Meta); err != nil {
		return Output{}, &codedError{code.HandlerError, fmt.Errorf("the program printed something else than a JSON object of strings: %w", err)}
	}
	return out, nil
}

// notExecuted is the exit code with which a program with limits reports that it could not be started.
const notExecuted = 126
