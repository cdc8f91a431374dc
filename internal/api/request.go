package api

import (
	"errors"

	"github.com/holdfastdev/holdfast"
)

// Asked has the id of the request.
type Asked struct {
	Request string `header:"X-Request-Id" doc:"Id of this request, for stories and logs. The server makes one when it is left out."`
}

// Said is a request on something that needs no name, with actor and reason.
type Said struct {
	Asked
	Body Word
}

// ByName has a name in the path.
type ByName struct {
	Name string `path:"name" doc:"Name. Percent-encode everything that is not a letter or a digit, also a slash (%2F)."`
}

// OnNamed is a request on something that has a name, with actor and reason.
type OnNamed struct {
	ByName
	Said
}

// Dropped has the actor and reason of a DELETE request, which has no body.
type Dropped struct {
	Actor  string `query:"actor" doc:"Name of the person who does this. The name of the key is added to it."`
	Reason string `query:"reason" doc:"Why it is done, for the audit log."`
}

// Word returns the actor and the reason.
func (d Dropped) Word() Word { return Word(d) }

// DropNamed is the request to delete something that has a name.
type DropNamed struct {
	ByName
	Asked
	Dropped
}

// Partial is part of lists that may contain records that cannot be read.
type Partial struct {
	Problems []*Problem `json:"problems,omitempty" doc:"One problem for each record that was left out because it cannot be read."`
}

// Complain moves the errors of single records, which arrive joined in one error, into Problems. It returns any other error.
func (p *Partial) Complain(err error) error {
	joined, several := err.(interface{ Unwrap() []error })
	if _, one := err.(*holdfast.Error); one || !several {
		return err
	}
	p.Problems = Problems(joined.Unwrap())
	return nil
}

func (p Partial) Err() error { return errors.Join(Errs(p.Problems)...) }
