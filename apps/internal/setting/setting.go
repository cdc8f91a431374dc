// Package setting reads the settings of an application from environment variables, by a table that help and README show too.
package setting

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/internal/config"
)

// A Setting is one environment variable. S is the application's struct of all settings.
type Setting[S any] struct {
	Name    string
	Default string // as it is written in the environment; empty: see Meaning
	Meaning string
	Set     func(s *S, text string) error // the error says which values are allowed
	Secret  bool                          // may contain a password
}

// Read reads all settings of a table. The error names every invalid setting. An empty value counts as not set.
func Read[S any](table []Setting[S], env func(string) string) (s S, err error) {
	var problems []error
	for _, k := range table {
		text := strings.TrimSpace(env(k.Name))
		if text == "" {
			text = k.Default
		}
		if text == "" {
			continue
		}
		if err := k.Set(&s, text); err != nil {
			problems = append(problems, fmt.Errorf("%s=%s: %w", k.Name, k.shown(text), err))
		}
	}
	return s, errors.Join(problems...)
}

// PrintHelp lists the settings of a table.
func PrintHelp[S any](to io.Writer, table []Setting[S]) {
	fmt.Fprint(to, "\nEnvironment variables:\n")
	for _, k := range table {
		fmt.Fprintf(to, "  %-24s %s", k.Name, k.Meaning)
		if k.Default != "" {
			fmt.Fprintf(to, " Default: %s.", k.Default)
		}
		fmt.Fprintln(to)
	}
}

// Row returns the row of the setting in the table of a README.
func (k *Setting[S]) Row() string {
	shown := k.Default
	if shown != "" {
		shown = "`" + shown + "`"
	}
	return "| `" + k.Name + "` | " + shown + " | " + k.Meaning + " |"
}

// shown returns a value for an error message: without a password, and at most 80 bytes long.
func (k *Setting[S]) shown(text string) string {
	if k.Secret {
		text = config.Redacted(text)
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return strconv.Quote(text)
}

// DataDir returns the folder of an application in the user's data directory.
func DataDir(application string) (string, error) {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, application), nil
	}
	home, err := os.UserHomeDir()
	if err == nil && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		return filepath.Join(home, ".local", "share", application), nil
	}
	if data, err := os.UserConfigDir(); err == nil {
		return filepath.Join(data, application), nil
	}
	return "", errors.New("DATA_DIR: this user has no data directory: set DATA_DIR to a folder for the files")
}

// IsFile reports whether a store is an SQLite file of this machine, which one process uses, and not a database server.
func IsFile(store string) bool {
	return !strings.Contains(store, "://") && !strings.Contains(store, "=")
}

// MakeFolder creates the folder of a store that is a file.
func MakeFolder(store string) error {
	if !IsFile(store) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return fmt.Errorf("DATABASE_URL: cannot create the folder of the store: %w", err)
	}
	return nil
}

// Ignored is for a setting that something else reads.
func Ignored[S any](*S, string) error { return nil }

// Text takes any text.
func Text[S any](of func(*S) *string) func(*S, string) error {
	return func(s *S, text string) error { *of(s) = text; return nil }
}

// Address takes host:port.
func Address[S any](of func(*S) *string) func(*S, string) error {
	return func(s *S, text string) error {
		_, port, err := net.SplitHostPort(text)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
			return errors.New("use host:port, such as 127.0.0.1:4750")
		}
		*of(s) = text
		return nil
	}
}

// hostName matches valid host names and IP addresses.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$|^[0-9a-f:]{2,39}$`)

// Hosts takes host names without ports, separated by commas. example is for the error.
func Hosts[S any](of func(*S) *[]string, example string) func(*S, string) error {
	return func(s *S, text string) error {
		for name := range strings.SplitSeq(text, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if !hostName.MatchString(name) {
				return errors.New("use host names without ports, separated by commas, such as " + example)
			}
			*of(s) = append(*of(s), name)
		}
		return nil
	}
}

// Number takes a whole number.
func Number[S any](of func(*S) *int, least, most int) func(*S, string) error {
	return func(s *S, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Errorf("use a whole number from %d to %d", least, most)
		}
		*of(s) = n
		return nil
	}
}

// Bytes takes a number of bytes.
func Bytes[S any](of func(*S) *int64, least, most int64) func(*S, string) error {
	return func(s *S, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > most {
			return fmt.Errorf("use a whole number of bytes from %d to %d", least, most)
		}
		*of(s) = n
		return nil
	}
}

// Duration takes a whole number of a unit of time.
func Duration[S any](of func(*S) *time.Duration, unit, least, most time.Duration) func(*S, string) error {
	return func(s *S, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(least/unit) || n > int64(most/unit) {
			return fmt.Errorf("use a whole number from %d to %d (in units of %v)", least/unit, most/unit, unit)
		}
		*of(s) = time.Duration(n) * unit
		return nil
	}
}

// Choice takes one of two values: off sets false, on sets true.
func Choice[S any](of func(*S) *bool, off, on string) func(*S, string) error {
	return func(s *S, text string) error {
		if text != off && text != on {
			return fmt.Errorf("use %s or %s", off, on)
		}
		*of(s) = text == on
		return nil
	}
}

// Period takes a retention period. It accepts days, which Go's durations do not have, and "forever", which is 0.
func Period[S any](of func(*S) *time.Duration) func(*S, string) error {
	return func(s *S, text string) error {
		if text == "forever" {
			*of(s) = 0
			return nil
		}
		d, err := time.ParseDuration(text)
		if days, isDays := strings.CutSuffix(text, "d"); isDays {
			n, bad := strconv.ParseUint(days, 10, 16)
			d, err = time.Duration(n)*24*time.Hour, bad
		}
		if err != nil || d < time.Second || d > 36500*24*time.Hour {
			return errors.New("use a period such as 90m, 24h or 7d, from 1s to 36500d, or forever")
		}
		*of(s) = d
		return nil
	}
}

// Site reads the address of a service, without a path at its end.
func Site[S any](of func(*S) *string, example string) func(*S, string) error {
	return func(s *S, text string) error {
		at, err := url.Parse(text)
		if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.RawQuery != "" || at.Fragment != "" {
			return fmt.Errorf("use an address such as %s", example)
		}
		*of(s) = strings.TrimSuffix(text, "/")
		return nil
	}
}
