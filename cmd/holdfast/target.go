package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/config"
	"github.com/holdfastdev/holdfast/kind/httpjob"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// addTargetFlags adds the flags that name the store or the server of a command.
func addTargetFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.String("store", "", "store: a file, or postgres://...")
	flags.String("server", "", "or a server, such as http://127.0.0.1:4747")
	flags.String("key", "", "API key for the server; prefer HOLDFAST_KEY, because other users can see the flags of a process")
	flags.String("key-file", "", "file that contains the API key")
}

// A target is what a command works on: a store, or a server in front of one. Both have the same interfaces, so commands do not distinguish them.
type target struct {
	operator ops.Operator
	jobs     holdfast.Enqueuer
	store    store.Store // nil for a server
	address  string      // of the store; empty for a server
	close    func() error
}

// withOperator opens the target of a command, calls do with its operations, and closes the target.
func withOperator(c *cobra.Command, do func(ctx context.Context, o ops.Operator) error) error {
	return withTarget(c, func(ctx context.Context, t *target) error { return do(ctx, t.operator) })
}

// withTarget opens the target of a command, calls do with it, and closes it.
func withTarget(c *cobra.Command, do func(ctx context.Context, t *target) error) error {
	t, err := openTarget(c)
	if err != nil {
		return err
	}
	defer t.close() //nolint:errcheck // every change is durable before this
	return do(c.Context(), t)
}

func openTarget(c *cobra.Command) (*target, error) {
	set, err := config.Read(os.Environ())
	if err != nil {
		return nil, &usageError{err}
	}
	server, address, err := resolveTarget(c, set)
	if err != nil {
		return nil, usage(c, err)
	}
	if server != "" {
		return openServer(c, server, set)
	}
	return openStore(c, address)
}

// resolveTarget returns the server or the store that a command works on: from the flags, else from the environment, else the store in the user's data
// directory.
func resolveTarget(c *cobra.Command, set config.Values) (server, address string, err error) {
	address, _ = c.Flags().GetString("store")
	server, _ = c.Flags().GetString("server")
	storeGiven, serverGiven := c.Flags().Changed("store"), c.Flags().Changed("server")
	errNoTarget := errors.New("no store or server: pass --store jobs.db, --store postgres://... or --server http://..., or set HOLDFAST_SERVER or DATABASE_URL")
	storeSet := set.Of("store").From != "DATABASE_URL" && set.IsSet("store")
	switch {
	case storeGiven && serverGiven:
		return "", "", errors.New("--store and --server cannot be used together")
	case storeGiven && address == "", serverGiven && server == "":
		return "", "", errNoTarget
	case storeGiven || serverGiven:
		return server, address, nil
	case storeSet && set.IsSet("server"):
		return "", "", errors.New("HOLDFAST_STORE and HOLDFAST_SERVER are both set: choose one with --store or --server")
	case set.IsSet("server"):
		return set.Text("server"), "", nil
	case set.IsSet("store"):
		return "", set.Text("store"), nil
	}
	path, err := defaultStore()
	if err == nil {
		if _, err = os.Stat(path); err == nil {
			return "", path, nil
		}
	}
	return "", "", errNoTarget
}

// defaultStore is the file of the store that is used when none is named: in systemd's state directory, or else in the user's data directory.
func defaultStore() (string, error) {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return filepath.Join(dir, "jobs.db"), nil
	}
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "holdfast", "jobs.db"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("this user has no home directory: name a store with --store")
	}
	switch runtime.GOOS {
	case "windows":
		if local := os.Getenv("LOCALAPPDATA"); local != "" {
			return filepath.Join(local, "Holdfast", "jobs.db"), nil
		}
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "Holdfast", "jobs.db"), nil
	}
	return filepath.Join(home, ".local", "share", "holdfast", "jobs.db"), nil
}

// openStore opens a store. A file must exist already, so that a misspelled name is an error and not a new, empty store.
func openStore(c *cobra.Command, address string) (*target, error) {
	file, err := anystore.File(address)
	if err != nil {
		return nil, err
	}
	if file != "" {
		if _, err := os.Stat(file); os.IsNotExist(err) {
			return nil, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: fmt.Sprintf("there is no store at %s: check the file name", file)}
		}
	}
	s, err := anystore.OpenExisting(c.Context(), address)
	if err != nil {
		return nil, err
	}
	return &target{operator: newOperator(s, ops.Config{}, nil), jobs: enqueuerOf(s, nil), store: s, address: address, close: s.Close}, nil
}

// newOperator returns the operations on a store, configured the same for a server and for a command.
func newOperator(s store.Store, cfg ops.Config, names httpjob.Dependencies) *ops.Service {
	cfg.Retention, cfg.Prepare = engine.DefaultRetention, prepareBuiltIn(names)
	if cfg.CheckSubscription == nil {
		cfg.CheckSubscription = checkSink
	}
	return ops.New(s, cfg)
}

func openServer(c *cobra.Command, address string, set config.Values) (*target, error) {
	key, err := keyFor(c, set)
	if err != nil {
		return nil, err
	}
	client, err := client.Dial(address, client.Config{Key: key})
	if err != nil {
		return nil, err
	}
	return &target{operator: client.Operator(), jobs: client.Store(), close: client.Close}, nil
}

// keyFor returns the API key: from the flags, or else from the environment.
func keyFor(c *cobra.Command, set config.Values) (string, error) {
	if key, _ := c.Flags().GetString("key"); key != "" {
		return key, nil
	}
	name, _ := c.Flags().GetString("key-file")
	if name == "" {
		return set.Text("key"), nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", &usageError{fmt.Errorf("cannot read the key from --key-file: %w", err)}
	}
	return strings.TrimSpace(string(text)), nil
}
