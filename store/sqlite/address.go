package sqlite

import (
	"net/url"
	"strconv"
	"strings"
)

// Parse reads an address: the path of a file, perhaps with options behind it, as in jobs.db?min_free=1073741824. A question mark
// without an option is part of the name.
func Parse(address string) (Config, error) {
	path, query, _ := strings.Cut(address, "?")
	if !strings.Contains(query, "=") {
		return Config{Path: address}, nil
	}
	cfg := Config{Path: path}
	options, err := url.ParseQuery(query)
	if err != nil {
		return cfg, invalid("the options of the file cannot be read: write them as ?min_free=67108864")
	}
	for name := range options {
		if name != "min_free" {
			return cfg, invalid("no option of a file is called %.40q: there is min_free", name)
		}
	}
	bytes, err := strconv.ParseInt(options.Get("min_free"), 10, 64)
	if err != nil || bytes < 0 {
		return cfg, invalid("min_free of %.40q: give the bytes that are to stay free, or 0 to never mind", options.Get("min_free"))
	}
	if cfg.MinFree = bytes; bytes == 0 {
		cfg.MinFree = -1
	}
	return cfg, nil
}

// DSN is what an application's own handle on the store's file is opened with, so that its transactions wait for their turn to write instead of
// failing at once:
//
//	db, err := sql.Open("sqlite", sqlite.DSN("jobs.db")) // import _ "modernc.org/sqlite"
//
// It takes what [Open] and [Parse] take as an address. Transactions take the write lock when they begin and wait for it up to thirty seconds, and a
// commit is on disk when it returns, as it is in the store. Use the handle for transactions that write, and end them soon: SQLite has one writer.
func DSN(address string) string {
	cfg, err := Parse(address)
	if err != nil {
		cfg.Path = address // opening it says what is wrong
	}
	return "file:" + (&url.URL{Path: cfg.Path}).EscapedPath() + "?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)"
}
