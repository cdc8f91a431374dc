// Command screenshot is a service that takes pictures of pages. It is an application on Holdfast: each picture is a job, paid with credits, made by a headless browser,
// retried when that can help, and free when it fails.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/command"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
)

func main() {
	command.Main(run)
}

const help = `screenshot takes pictures of pages.

  screenshot                        the page, the API and workers: nothing to set up
  screenshot credits EMAIL AMOUNT   give the first organisation of a user credits
  screenshot password EMAIL         give a user a new password, which is printed
  screenshot doctor                 check the ledger of credits against the shots, while screenshot is stopped
  screenshot help                   this help, with all environment variables

The first SIGTERM or Ctrl-C stops gracefully: the process accepts nothing new and finishes its work within STOP_GRACE_SEC. A second one ends it at once. No shot is
lost then either: interrupted ones run again later.
`

// errUsage marks errors in the command line.
var errUsage = errors.New("see 'screenshot help'")

// errFindings is the error of a check that found something.
var errFindings = errors.New("the ledger of credits is not sound")

// run executes the command line and returns the exit code: 0 for success, 1 for an error, 2 for a wrong command line or wrong settings.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	return command.ExitCode("screenshot", execute(ctx, args, env, stdout, stderr), stderr, errUsage)
}

func execute(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	wanted, known := map[string]int{"": 0, "doctor": 0, "credits": 2, "password": 1, "help": 0, "-h": 0, "-help": 0, "--help": 0}[verb]
	switch {
	case !known:
		return fmt.Errorf("unknown command %q: %w", verb, errUsage)
	case len(args) != wanted:
		return fmt.Errorf("%s takes %d arguments: %w", verb, wanted, errUsage)
	case strings.HasSuffix(verb, "h") || strings.HasSuffix(verb, "help"):
		fmt.Fprint(stdout, help)
		setting.PrintHelp(stdout, settingTable)
		return nil
	}
	set, err := readSettings(env)
	if err != nil {
		return fmt.Errorf("the settings are not valid:\n%w\n%w", err, errUsage)
	}
	log := command.NewLog(stderr)
	if verb == "" {
		return serve(ctx, set, stdout, log)
	}
	a, err := open(ctx, set, idleCamera{}, log)
	if err != nil {
		return err
	}
	return errors.Join(a.administer(ctx, verb, args, stdout), a.close())
}

// serve runs everything until ctx ends and then stops in order: nothing new is accepted, work in progress finishes, and everything is closed after the last write.
func serve(ctx context.Context, set settings, out io.Writer, log *slog.Logger) (err error) {
	a, err := open(ctx, set, nil, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	worker, err := a.engine()
	if err != nil {
		return err
	}
	handler, err := a.face()
	if err != nil {
		return err
	}
	listener, err := web.Listen(ctx, "ADDR", set.Addr)
	if err != nil {
		return err
	}
	server := web.NewServer(listener, handler, set.Grace, log)
	defer server.Close()
	first, err := a.firstAccount(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The page is at %s\n", server.URL())
	fmt.Fprintf(out, "The first account and its API key are in %s\n", a.firstFile())
	if first != "" {
		fmt.Fprint(out, first)
	}
	return web.RunAll(ctx, map[string]func(context.Context) error{"the engine": worker.Run, "the listener": server.Run})
}

func (a *app) firstFile() string { return filepath.Join(a.set.Data, "first-account") }

const firstEmail = "admin@localhost"

// firstAccount makes the account of the operator and an API key at the first start. It returns what is printed then; the same is in a file.
func (a *app) firstAccount(ctx context.Context) (text string, err error) {
	password := rand.Text()
	_, err = a.accounts.SignUp(ctx, account.SignUp{Email: firstEmail, Password: password, Name: "Admin", Organisation: "First organisation"})
	if errors.Is(err, account.ErrTaken) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	token, _, err := a.accounts.SignIn(ctx, account.SignIn{Email: firstEmail, Password: password, From: "first start"})
	if err != nil {
		return "", err
	}
	id, err := a.accounts.OpenSession(ctx, token)
	if err != nil {
		return "", err
	}
	_, key, err := a.accounts.CreateKey(ctx, id, account.KeyRequest{Name: "first", Scopes: []account.Scope{account.Read, account.Write, account.Operate}})
	if err != nil {
		return "", err
	}
	if err := a.accounts.SignOut(ctx, id); err != nil {
		return "", err
	}
	text = fmt.Sprintf("Email: %s\nPassword: %s\nAPI key: %s\n", firstEmail, password, key)
	if err := os.WriteFile(a.firstFile(), []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("DATA_DIR: the first account cannot be written: %w", err)
	}
	return text, nil
}

// administer executes the commands that need only the store.
func (a *app) administer(ctx context.Context, verb string, args []string, out io.Writer) error {
	switch verb {
	case "doctor":
		return a.doctor(ctx, out)
	case "credits":
		return a.giveCredits(ctx, args, out)
	}
	password := rand.Text()
	if err := a.accounts.ResetPassword(ctx, args[0], password); err != nil {
		return err
	}
	fmt.Fprintf(out, "The new password of %s is %s\n", args[0], password)
	return nil
}

func (a *app) doctor(ctx context.Context, out io.Writer) error {
	findings, err := a.service.Check(ctx)
	if err != nil {
		return err
	}
	for _, line := range findings {
		fmt.Fprintln(out, line)
	}
	if len(findings) > 0 {
		return errFindings
	}
	fmt.Fprintln(out, "The ledger of credits is sound.")
	return nil
}

func (a *app) giveCredits(ctx context.Context, args []string, out io.Writer) error {
	amount, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number of credits: %w", args[1], errUsage)
	}
	user, err := a.accounts.UserByEmail(ctx, args[0])
	if errors.Is(err, account.ErrNotFound) {
		return fmt.Errorf("there is no user %s", args[0])
	}
	if err != nil {
		return err
	}
	of, err := a.accounts.Organisations(ctx, user.ID)
	if err != nil {
		return err
	}
	if len(of) == 0 {
		return fmt.Errorf("%s belongs to no organisation", args[0])
	}
	ledger := a.service.Ledger()
	err = ledger.DB.Write(ctx, func(tx *database.Tx) error {
		_, err := ledger.Grant(ctx, tx, credit.Gift{Owner: of[0].ID, Amount: amount, Note: "given by the operator"})
		return err
	})
	if err != nil {
		return err
	}
	b, err := ledger.Balance(ctx, of[0].ID)
	fmt.Fprintf(out, "%s has %d credits.\n", of[0].Name, b.Available)
	return err
}
