package store

import (
	"fmt"

	"github.com/holdfastdev/holdfast"
)

// A Schema says which version the tables of a store have, and what is missing.
type Schema struct {
	Version int    `json:"version"`       // of the tables; 0: there are none
	Latest  int    `json:"latest"`        // which this program needs
	SQL     string `json:"sql,omitempty"` // the statements that lead from Version to Latest; empty: none are needed
}

// Current returns nil if this program can use the tables as they are, and otherwise an ErrUnavailable that says what to do.
func (s Schema) Current() error {
	switch {
	case s.Version == s.Latest:
		return nil
	case s.Version == 0:
		return &holdfast.Error{Err: holdfast.ErrUnavailable,
			Message: "the database has no tables of Holdfast: create them with 'holdfast migrate up', or start a worker or a server on it, which does the same"}
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable,
		Message: fmt.Sprintf("the tables of the database have version %d, and this program needs version %d: run 'holdfast migrate up'", s.Version, s.Latest)}
}
