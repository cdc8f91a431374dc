//go:build cgo

package main

import (
	"database/sql"

	_ "github.com/mattn/go-sqlite3"
)

const driver = "mattn/go-sqlite3 v1.14.44"

// connect sets the same durability as Holdfast's store: acknowledged jobs are on the disk.
func connect(file string) (*sql.DB, error) {
	return sql.Open("sqlite3", "file:"+file+"?_journal=WAL&_sync=FULL&_timeout=10000&_fk=true&_txlock=immediate")
}
