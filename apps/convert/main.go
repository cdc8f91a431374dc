// Command convert turns PDFs into XML. It is an application on Holdfast: uploads become jobs, workers have a gateway convert them, and whatever fails is
// the engine's to deal with.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfastdev/holdfast/apps/convert/gateway"
)

func main() {
	gateway.Main() // a process that reads a PDF goes no further
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

const help = `convert turns PDFs into XML.

  convert                      the page, a worker and a gateway: everything, with nothing to set up
  convert web                  the page and the API alone
  convert worker               a worker alone: several may share a PostgreSQL store
  convert gateway              the gateway alone: POST /convert?mapping=NAME with a PDF answers XML
  convert key create --name N  make an API key: --scope viewer|operator|admin, --owner OWNER, --for 720h
  convert key list             which keys there are
  convert key revoke ID        end one
  convert help                 this, and all that can be set by environment

A first SIGTERM or Ctrl-C stops gracefully: nothing new is taken, what is under way is given STOP_GRACE_SEC. A second one ends it at once; nothing is lost then
either, only later.
`

// errUsage: nobody could know what was meant.
var errUsage = errors.New("see 'convert help'")

// run does what the command line says, and answers with the exit code: 0 done, 1 it did not work, 2 it made no sense.
func run(ctx context.Context, args []string, env func(string) string, out, talk io.Writer) int {
	err := command(ctx, args, env, out, talk)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(talk, "convert: %v\n", err)
		return 2
	}
	fmt.Fprintf(talk, "convert: %v\n", err)
	return 1
}

func command(ctx context.Context, args []string, env func(string) string, out, talk io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "help", "-h", "-help", "--help":
		printHelp(out)
		return nil
	case "", "web", "worker", "gateway":
		if len(args) > 0 {
			return fmt.Errorf("%q means nothing here, what can be set is set by environment: %w", args[0], errUsage)
		}
	case "key":
	default:
		return fmt.Errorf("there is no %q: %w", verb, errUsage)
	}
	set, err := readSettings(env)
	if err != nil {
		return fmt.Errorf("the settings make no sense:\n%w\n%w", err, errUsage)
	}
	log := newLog(talk)
	switch verb {
	case "gateway":
		return serveGateway(ctx, set, out, log)
	case "key":
		return keys(ctx, set, args, out, log)
	}
	return serve(ctx, set, parts{web: verb != "worker", worker: verb != "web", gateway: verb == "" && !set.GatewayGiven}, out, log)
}

func printHelp(out io.Writer) {
	fmt.Fprint(out, help, "\nThe environment:\n")
	for _, k := range knobs {
		fmt.Fprintf(out, "  %-24s %s", k.Name, k.Meaning)
		if k.Default != "" {
			fmt.Fprintf(out, " Default: %s.", k.Default)
		}
		fmt.Fprintln(out)
	}
}

// newLog makes the log: as text for people, as JSON for machines.
func newLog(to io.Writer) *slog.Logger {
	if file, ok := to.(*os.File); ok {
		if about, err := file.Stat(); err == nil && about.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(to, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(to, nil))
}
