package sqlite

import (
	"net/url"
	"strconv"
	"strings"
)

// Parse reads an address: the path of a file, optionally with options, as in jobs.db?min_free=1073741824. A question
// mark that no option follows is part of the file name.
func Parse(address string) (Config, error) {
	path, query, _ := strings.Cut(address, "?")
	if !strings.Contains(query, "=") {
		return Config{Path: address}, nil
	}
	cfg := Config{Path: path}
	options, err := url.ParseQuery(query)
	if err != nil {
		return cfg, invalid("the file options cannot be parsed: write them as ?min_free=67108864")
	}
	for name := range options {
		if name != "min_free" {
			return cfg, invalid("unknown file option %.40q: the only option is min_free", name)
		}
	}
	bytes, err := strconv.ParseInt(options.Get("min_free"), 10, 64)
	if err != nil || bytes < 0 {
		return cfg, invalid("min_free of %.40q: give the number of bytes to leave free, or 0 for no limit", options.Get("min_free"))
	}
	if cfg.MinFree = bytes; bytes == 0 {
		cfg.MinFree = -1
	}
	return cfg, nil
}

// DSN returns the data source name with which an application opens its own handle on the store's file, so that its
// transactions wait for the write lock instead of failing at once:
//
//	db, err := sql.Open("sqlite", sqlite.DSN("jobs.db")) // import _ "modernc.org/sqlite"
//
// It accepts the same addresses as [Open] and [Parse]. Transactions take the write lock when they begin, and wait for
// it for up to thirty seconds. A commit is on disk when it returns, as in the store. Use the handle for transactions
// that write, and keep them short: SQLite has one writer.
func DSN(address string) string {
	cfg, err := Parse(address)
	if err != nil {
		cfg.Path = address // opening the handle reports what is wrong
	}
	return "file:" + (&url.URL{Path: cfg.Path}).EscapedPath() + "?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)"
}
