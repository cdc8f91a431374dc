//go:build !cgo

package main

import (
	"database/sql"

	_ "modernc.org/sqlite"
)

const driver = "modernc.org/sqlite v1.60.1 (built without cgo; with cgo it would be mattn/go-sqlite3)"

// connect sets the same durability as Holdfast's store: acknowledged jobs are on the disk.
func connect(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_txlock=immediate")
}
