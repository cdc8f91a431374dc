// Command fetchbox fetches resources through proxies into object storage. It is an application on Holdfast: each resource becomes a job, and what cannot be fetched
// becomes a dead letter that can be replayed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/internal/command"
	"github.com/holdfastdev/holdfast/apps/internal/keyring"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/ops"
)

func main() {
	command.Main(run)
}

var help = `fetchbox fetches resources through proxies into object storage.

  fetchbox                      the page, the API and workers: nothing to set up
  fetchbox replay [FLAGS]       replay dead letters of a running fetchbox; 'fetchbox replay -h' lists the flags
  fetchbox ledger rebuild       delete the ledger and build it again from the store, while fetchbox is stopped
` + keyring.Usage("fetchbox") + `  fetchbox help                 this help, with all environment variables

The first SIGTERM or Ctrl-C stops gracefully: the process accepts nothing new and finishes its work within STOP_GRACE_SEC. A second one ends it at once. No resource is
lost then either: interrupted ones run again later.
`

// errUsage marks errors in the command line.
var errUsage = errors.New("see 'fetchbox help'")

// run executes the command line and returns the exit code: 0 for success, 1 for an error, 2 for a wrong command line or wrong settings.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	return command.ExitCode("fetchbox", execute(ctx, args, env, stdout, stderr), stderr, errUsage, keyring.ErrUsage)
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
	case "":
	case "replay", "key":
	case "ledger":
		if len(args) != 1 || args[0] != "rebuild" {
			return fmt.Errorf("ledger: the only command is 'fetchbox ledger rebuild': %w", errUsage)
		}
	default:
		return fmt.Errorf("unknown command %q: %w", verb, errUsage)
	}
	set, err := readSettings(env)
	if err != nil {
		return fmt.Errorf("the settings are not valid:\n%w\n%w", err, errUsage)
	}
	log := command.NewLog(stderr)
	switch verb {
	case "replay":
		return replayCommand(ctx, &set, env, args, stdout)
	case "key":
		return keys(ctx, set, args, stdout, log)
	case "ledger":
		return rebuildLedger(ctx, set, stdout, log)
	}
	return serve(ctx, set, stdout, log)
}

// serve runs everything until ctx ends and then stops in order: nothing new is accepted, work in progress finishes, and everything is closed after the last write.
func serve(ctx context.Context, set settings, out io.Writer, log *slog.Logger) (err error) {
	a, err := open(ctx, set, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.sweepAtStart(ctx); err != nil {
		log.Warn("the files that a killed process left cannot be deleted, the sweep will do it", "event", "sweep_failed", "error", err.Error())
	}
	worker, err := a.engine()
	if err != nil {
		return err
	}
	site, err := a.site()
	if err != nil {
		return err
	}
	listener, err := web.Listen(ctx, "ADDR", set.Addr)
	if err != nil {
		return err
	}
	server := web.NewServer(listener, site, set.Grace, log)
	defer server.Close()
	key, err := a.localKey(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The page is at %s\n", server.URL())
	fmt.Fprintf(out, "An API key for this machine is in %s\n", key)
	if a.server != nil && set.NatsAddr != "" {
		fmt.Fprintf(out, "Dead letters are on the subject jobs.dlq at %s\n", a.server.URL())
	}
	return web.RunAll(ctx, map[string]func(context.Context) error{"the engine": worker.Run, "the listener": server.Run})
}

// localKey returns the file with an API key for programs on this machine. It is created at the first start.
func (a *app) localKey(ctx context.Context) (string, error) {
	file := filepath.Join(a.set.Data, "key")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	_, text, err := a.operator.CreateKey(ctx, apikey.Request{Name: "local", Scope: apikey.Admin}, ops.Actor{Name: keyring.Actor(), Reason: "first start of fetchbox"})
	if err != nil {
		return "", err
	}
	err = os.WriteFile(file+".new", []byte(text+"\n"), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file) // a process that is killed leaves no empty key
	}
	if err != nil {
		return "", fmt.Errorf("DATA_DIR: the API key cannot be written: %w", err)
	}
	return file, nil
}

// keys implements `fetchbox key ...`: API keys for programs. It needs only the store, so it works while fetchbox runs.
func keys(ctx context.Context, set settings, args []string, out io.Writer, log *slog.Logger) (err error) {
	a := &app{set: set, log: log}
	if err := a.openStore(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return keyring.Command(ctx, a.operator, args, out, "fetchbox key")
}

// rebuildLedger implements `fetchbox ledger rebuild`.
func rebuildLedger(ctx context.Context, set settings, out io.Writer, log *slog.Logger) (err error) {
	a := &app{set: set, log: log}
	if err := a.openStore(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.openLedger(); err != nil {
		return err
	}
	if err := a.ledger.Clear(); err != nil {
		return err
	}
	_, missed, err := a.ledger.Step(ctx, a.jobs)
	if err != nil {
		return err
	}
	after, err := a.ledger.After()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The ledger has all events up to number %d.\n", after)
	if missed > 0 {
		fmt.Fprintf(out, "Retention had deleted %d older events: what only they told is missing.\n", missed)
	}
	return nil
}
