package lane

import (
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Scope is the lanes from which a claim may take: those of its queues and kinds.
type Scope struct {
	Queues []string // none: all
	Kinds  []string // none: all

	kinds map[string]bool // the same as Kinds, if there are many
	key   string
}

// fewKinds is the number of kinds up to which a linear search is used.
const fewKinds = 8

// NewScope returns the scope of a claim. A claim that names neither queues nor kinds is refused: it would take every
// job there is.
func NewScope(c store.Claim) (*Scope, error) {
	if len(c.Queues) == 0 && len(c.Kinds) == 0 {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a claim without queues and without kinds: name the queues to claim from, the kinds the worker handles, or both"}
	}
	s := &Scope{Queues: distinct(c.Queues), Kinds: distinct(c.Kinds)}
	s.key = strings.Join(s.Queues, "\x00") + "\x00\x00" + strings.Join(s.Kinds, "\x00")
	if len(s.Kinds) > fewKinds {
		s.kinds = make(map[string]bool, len(s.Kinds))
		for _, kind := range s.Kinds {
			s.kinds[kind] = true
		}
	}
	return s, nil
}

// Key is equal for two scopes that name the same queues and kinds in the same order, and differs otherwise.
func (s *Scope) Key() string { return s.key }

// Covers reports whether a lane is in the scope.
func (s *Scope) Covers(l *Lane) bool {
	if len(s.Queues) > 0 && !slices.Contains(s.Queues, l.Queue) {
		return false
	}
	if s.kinds != nil {
		return s.kinds[l.Kind]
	}
	return len(s.Kinds) == 0 || slices.Contains(s.Kinds, l.Kind)
}

// distinct returns the names without repetitions.
func distinct(names []string) []string {
	if len(names) > fewKinds {
		return slices.Compact(slices.Sorted(slices.Values(names)))
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return slices.Compact(slices.Sorted(slices.Values(names)))
		}
	}
	return slices.Clone(names)
}
