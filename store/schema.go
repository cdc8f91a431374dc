package store

import (
	"fmt"

	"github.com/holdfastdev/holdfast"
)

// A Schema says which version the tables of a store have, and what is missing.
type Schema struct {
	Version int    `json:"version"`         // of the tables; 0: there are none
	Needs   int    `json:"needs,omitempty"` // the lowest version that a program must know to use the tables; 0: there are none
	Latest  int    `json:"latest"`          // the newest version that this program knows, and to which it migrates
	SQL     string `json:"sql,omitempty"`   // the statements that lead from Version to Latest; empty: none are needed
}

// Current returns nil if this program can use the tables as they are, and otherwise an ErrUnavailable that says what to do. Tables that a newer release has
// migrated can be used if Needs is at most Latest.
func (s Schema) Current() error {
	switch {
	case s.Version >= s.Latest && s.Needs <= s.Latest:
		return nil
	case s.Version > s.Latest:
		return &holdfast.Error{Err: holdfast.ErrUnavailable,
			Message: fmt.Sprintf("the tables of the database were migrated by a newer holdfast to version %d, which needs a program that knows version %d or later; this program knows version %d: upgrade this program",
				s.Version, s.Needs, s.Latest)}
	case s.Version == 0:
		return &holdfast.Error{Err: holdfast.ErrUnavailable,
			Message: "the database has no tables of Holdfast: create them with 'holdfast migrate up', or start a worker or a server on it, which does the same"}
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable,
		Message: fmt.Sprintf("the tables of the database have version %d, and this program needs version %d: run 'holdfast migrate up'", s.Version, s.Latest)}
}
