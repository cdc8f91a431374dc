// Command convert converts PDFs to XML. It is an application on Holdfast: each upload becomes a job, workers send it to a gateway that converts it, and the engine
// handles failures.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfastdev/holdfast/apps/convert/gateway"
	"github.com/holdfastdev/holdfast/apps/internal/command"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
)

func main() {
	gateway.Main() // in a process that was started to read one PDF, this does not return
	command.Main(run)
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
	return command.ExitCode("convert", execute(ctx, args, env, stdout, stderr), stderr, errUsage)
}

func execute(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, help)
		setting.PrintHelp(stdout, settingTable)
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
	log := command.NewLog(stderr)
	switch verb {
	case "gateway":
		return serveGateway(ctx, set, stdout, log)
	case "key":
		return keys(ctx, set, args, stdout, log)
	}
	return serve(ctx, set, roles{web: verb != "worker", worker: verb != "web", gateway: verb == "" && !set.GatewayGiven}, stdout, log)
}
