// Package config holds all settings of the command in one table. A setting is made by a flag, by an environment variable, or by a file that an environment variable
// names. The flags, the environment variables and the reference in docs/configuration.md are all derived from the table, so they cannot differ.
package config
