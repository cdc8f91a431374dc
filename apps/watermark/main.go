// Command watermark gives each recipient of a video a copy with a mark of its own, visible or invisible, and finds the recipient of a leaked copy. It is an application on
// Holdfast: each copy is a job, retried when that can help, and no copy is forgotten.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/holdfastdev/holdfast/apps/internal/command"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

func main() {
	command.Main(run)
}

const help = `watermark gives each recipient of a video a copy with a mark of its own.

  watermark               the page and a worker: nothing to set up but FFmpeg
  watermark import FILE   take over the database of DownloadOnce, an SQLite file, while this service is stopped; twice changes nothing
  watermark help          this help, with all environment variables

The first SIGTERM or Ctrl-C stops gracefully: the process accepts nothing new and finishes its work within STOP_GRACE_SEC. A second one ends it at once. No copy is
lost then either: interrupted ones are made again later.
`

// errUsage marks errors in the command line.
var errUsage = errors.New("see 'watermark help'")

// run executes the command line and returns the exit code: 0 for success, 1 for an error, 2 for a wrong command line or wrong settings.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	return command.ExitCode("watermark", execute(ctx, args, env, stdout, stderr), stderr, errUsage)
}

func execute(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, verb):
		fmt.Fprint(stdout, help)
		setting.PrintHelp(stdout, settingTable)
		return nil
	case verb != "" && verb != "import":
		return fmt.Errorf("unknown command %q: %w", verb, errUsage)
	case verb == "import" && len(args) != 1:
		return fmt.Errorf("import takes the file of the old database: %w", errUsage)
	}
	set, err := readSettings(env)
	if err != nil {
		return fmt.Errorf("the settings are not valid:\n%w\n%w", err, errUsage)
	}
	log := command.NewLog(stderr)
	if verb == "import" {
		return importOld(ctx, set, args[0], stdout, log)
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
	worker, err := a.engine()
	if err != nil {
		return err
	}
	listener, err := web.Listen(ctx, "ADDR", set.Addr)
	if err != nil {
		return err
	}
	server := web.NewServer(listener, a, set.Grace, log)
	defer server.Close()
	fmt.Fprintf(out, "The page is at %s\n", server.URL())
	return web.RunAll(ctx, map[string]func(context.Context) error{"the engine": worker.Run, "the listener": server.Run})
}
