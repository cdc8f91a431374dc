// Command convert converts PDFs to XML. It is an application on Holdfast: each upload becomes a job, workers send it to a gateway that converts it, and the engine
// handles failures.
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
	gateway.Main() // in a process that was started to read one PDF, this does not return
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

const help = `convert converts PDFs to XML.

  convert                      the page, a worker and a gateway in one: nothing to set up
  convert web                  only the page and the API
  convert worker               only a worker; several can share a PostgreSQL store
  convert gateway              only the gateway: POST /convert?mapping=NAME with a PDF returns XML
  convert key create --name N  create an API key: --scope viewer|operator|admin, --owner OWNER, --for 720h
  convert key list             list the API keys
  convert key revoke ID        revoke an API key
  convert help                 this help, with all environment variables

The first SIGTERM or Ctrl-C stops gracefully: the process accepts nothing new and finishes its work within STOP_GRACE_SEC. A second one ends it at once. No job is
lost then either: interrupted jobs run again later.
`

// errUsage marks errors in the command line.
var errUsage = errors.New("see 'convert help'")

// run executes the command line and returns the exit code: 0 for success, 1 for an error, 2 for a wrong command line or wrong settings.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	err := command(ctx, args, env, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "convert: %v\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "convert: %v\n", err)
	return 1
}

func command(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "help", "-h", "-help", "--help":
		printHelp(stdout)
		return nil
	case "", "web", "worker", "gateway":
		if len(args) > 0 {
			return fmt.Errorf("unexpected argument %q; settings are environment variables: %w", args[0], errUsage)
		}
	case "key":
	default:
		return fmt.Errorf("unknown command %q: %w", verb, errUsage)
	}
	set, err := readSettings(env)
	if err != nil {
		return fmt.Errorf("the settings are not valid:\n%w\n%w", err, errUsage)
	}
	log := newLog(stderr)
	switch verb {
	case "gateway":
		return serveGateway(ctx, set, stdout, log)
	case "key":
		return keys(ctx, set, args, stdout, log)
	}
	return serve(ctx, set, roles{web: verb != "worker", worker: verb != "web", gateway: verb == "" && !set.GatewayGiven}, stdout, log)
}

func printHelp(out io.Writer) {
	fmt.Fprint(out, help, "\nEnvironment variables:\n")
	for _, k := range settingTable {
		fmt.Fprintf(out, "  %-24s %s", k.Name, k.Meaning)
		if k.Default != "" {
			fmt.Fprintf(out, " Default: %s.", k.Default)
		}
		fmt.Fprintln(out)
	}
}

// newLog returns the log: text on a terminal, JSON otherwise.
func newLog(to io.Writer) *slog.Logger {
	if file, ok := to.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(to, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(to, nil))
}
