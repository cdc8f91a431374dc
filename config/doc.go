// Package config is what can be set about the command, in one table: by flag, by environment, or by a file that the environment names. The
// command's flags, what it reads and the reference in docs/configuration.md all come from the table, so none of them can drift.
package config
