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
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/config"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/kind/httpjob"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// wherePlaced are the flags that say where a verb works.
func wherePlaced(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.String("store", "", "the store: a file or postgres://...")
	flags.String("server", "", "or the server to ask, such as http://127.0.0.1:4747")
	flags.String("key", "", "the API key for the server; better in HOLDFAST_KEY, because others see the flags of a process")
	flags.String("key-file", "", "or a file that holds it")
}

// A place is where a verb works: beside a store, or at a server far from it. Who works there cannot tell which.
type place struct {
	desk  ops.Desk
	jobs  holdfast.Enqueuer
	near  holdfast.Store // nil at a server
	at    string         // the address of the store; empty at a server
	close func() error
}

// withDesk opens the desk of the place that the command names.
func withDesk(c *cobra.Command, do func(ctx context.Context, o ops.Desk) error) error {
	return withPlace(c, func(ctx context.Context, p *place) error { return do(ctx, p.desk) })
}

// withPlace opens the place that the command names.
func withPlace(c *cobra.Command, do func(ctx context.Context, p *place) error) error {
	p, err := openPlace(c)
	if err != nil {
		return err
	}
	defer p.close() //nolint:errcheck // what was done is durable before
	return do(c.Context(), p)
}

func openPlace(c *cobra.Command) (*place, error) {
	set, err := config.Read(os.Environ())
	if err != nil {
		return nil, &usageError{err}
	}
	server, address, err := named(c, set)
	if err != nil {
		return nil, usage(c, err)
	}
	if server != "" {
		return openServer(c, server, set)
	}
	return openStore(c, address)
}

// named finds out where to work: what the flags say, or else the environment, or else the store in the user's data directory.
func named(c *cobra.Command, set config.Values) (server, address string, err error) {
	address, _ = c.Flags().GetString("store")
	server, _ = c.Flags().GetString("server")
	storeSaid, serverSaid := c.Flags().Changed("store"), c.Flags().Changed("server")
	nowhere := errors.New("no store: give --store jobs.db or --store postgres://..., or --server http://..., or set HOLDFAST_SERVER or DATABASE_URL")
	ours := set.Of("store").From != "DATABASE_URL" && set.Said("store")
	switch {
	case storeSaid && serverSaid:
		return "", "", errors.New("--store and --server: give one")
	case storeSaid && address == "", serverSaid && server == "":
		return "", "", nowhere
	case storeSaid || serverSaid:
		return server, address, nil
	case ours && set.Said("server"):
		return "", "", errors.New("HOLDFAST_STORE and HOLDFAST_SERVER are both set: say by --store or --server which is meant")
	case set.Said("server"):
		return set.Text("server"), "", nil
	case set.Said("store"):
		return "", set.Text("store"), nil
	}
	home, err := homeStore()
	if err == nil {
		if _, err = os.Stat(home); err == nil {
			return "", home, nil
		}
	}
	return "", "", nowhere
}

// homeStore is the store of whoever names none: in the directory that systemd gives, or else in the user's data directory.
func homeStore() (string, error) {
	if given, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); given != "" {
		return filepath.Join(given, "jobs.db"), nil
	}
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "holdfast", "jobs.db"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("nobody knows where this user's files are: name a store by --store")
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

// openStore opens a store, which must exist: a misspelled file name is not an empty store.
func openStore(c *cobra.Command, address string) (*place, error) {
	file, err := store.File(address)
	if err != nil {
		return nil, err
	}
	if file != "" {
		if _, err := os.Stat(file); os.IsNotExist(err) {
			return nil, &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: fmt.Sprintf("there is no store at %s: check the name", file)}
		}
	}
	s, err := store.Open(c.Context(), address)
	if err != nil {
		return nil, err
	}
	return &place{desk: deskOf(s, ops.Config{}, nil), jobs: takesIn(s, nil), near: s, at: address, close: s.Close}, nil
}

// deskOf is the desk beside a store, the same in a server and in a verb.
func deskOf(s holdfast.Store, cfg ops.Config, names httpjob.Dependencies) *ops.Service {
	cfg.Retention, cfg.CheckSubscription, cfg.Prepare = engine.DefaultRetention, checkSink, prepareBuiltIn(names)
	return ops.New(s, cfg)
}

func openServer(c *cobra.Command, address string, set config.Values) (*place, error) {
	key, err := keyFor(c, set)
	if err != nil {
		return nil, err
	}
	client, err := api.Dial(address, api.Config{Key: key})
	if err != nil {
		return nil, err
	}
	return &place{desk: client.Desk(), jobs: client.Store(), close: client.Close}, nil
}

// keyFor finds the key: a flag's, or else the environment's.
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
		return "", &usageError{fmt.Errorf("the key cannot be read from --key-file: %w", err)}
	}
	return strings.TrimSpace(string(text)), nil
}
