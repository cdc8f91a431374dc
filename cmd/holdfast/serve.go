package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/internal/config"
)

func serveCommand() *cobra.Command {
	var demo bool
	c := &cobra.Command{
		Use: "serve", Short: "Run a server: HTTP API, console, duties, built-in kinds, subscriptions", Args: cobra.NoArgs,
		Long: `Serves the HTTP API of a store and the console at /console/; performs duties (promote, reclaim, schedules, retention, ...); runs jobs of the built-in
kinds http and exec; delivers events to subscriptions. Any number of servers can share a PostgreSQL store.

Without --store it creates a store in the user's data directory. By default it listens on loopback, where no key is needed until one exists. An address
that other machines can reach needs keys. Create the first key on the store: holdfast keys create --store ... --scope admin --name ... People sign in to
the console with a key too. --console read-only disables changes in the console, --console off disables the console.

Every setting is a flag or an environment variable: see 'holdfast config' and docs/configuration.md. On SIGTERM or Ctrl-C the server stops gracefully: it
reports that it is not ready, claims no more jobs, lets running jobs finish within --grace, and exits with 0. A second signal ends it immediately; the
jobs that it was running are reclaimed when their leases expire.`,
		Example: `  holdfast serve
  holdfast serve --demo
  holdfast serve --store postgres://holdfast@db/jobs --listen 0.0.0.0:4747 --auth keys`,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := settings(c)
			if err != nil {
				return err
			}
			if demo {
				return serveDemo(c, set)
			}
			return serve(c, set)
		},
	}
	addSettingFlags(c)
	c.Flags().BoolVar(&demo, "demo", false, "serve a temporary store with demo jobs that call an unreliable gateway")
	return c
}

// addSettingFlags adds a flag for every setting that may be a flag.
func addSettingFlags(c *cobra.Command) {
	flags := c.Flags()
	for _, s := range config.Settings {
		switch {
		case !s.HasFlag() || s.Chapter == config.Where: // every command has the flags for the store and the server
		case s.Form == config.Switch:
			flags.Bool(s.Name, s.Default == "true", s.About)
		default:
			flags.String(s.Name, s.Default, s.About)
		}
	}
}

// settings returns the values of all settings. Flags take precedence over the environment.
func settings(c *cobra.Command) (config.Values, error) {
	set, err := config.Read(os.Environ())
	if err != nil {
		return set, &usageError{err}
	}
	var problems []error
	for _, s := range config.Settings {
		if flag := c.Flags().Lookup(s.Name); flag != nil && flag.Changed && s.Name != "key" {
			problems = append(problems, set.Set(s.Name, flag.Value.String()))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return set, usage(c, err)
	}
	return set, nil
}

// serve runs a server until the context of the command ends.
func serve(c *cobra.Command, set config.Values) error {
	if set.Of("server").From == "--server" {
		return usage(c, fmt.Errorf("--server cannot be used with serve: a server needs a store, pass --store"))
	}
	address := set.Text("store")
	if address == "" {
		path, err := defaultStore()
		if err != nil {
			return usage(c, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("cannot create the folder of the store: %w", err)
		}
		address = path
	}
	s := &serverProcess{set: set, logOutput: c.ErrOrStderr()}
	defer s.close()
	if err := s.open(c.Context(), address); err != nil {
		if c.Context().Err() != nil { // stopped before it was ready
			return nil
		}
		return err
	}
	return s.run(c.Context(), func(context.Context) error {
		fmt.Fprintf(c.OutOrStdout(), "holdfast serves %s at %s\n", config.Redacted(address), s.url())
		if pages := s.consoleURL(); pages != "" {
			fmt.Fprintf(c.OutOrStdout(), "console  %s\n", pages)
		}
		return nil
	})
}
