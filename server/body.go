package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

// bodyOf reads a JSON body, so far and no further. What it holds of the memory for bodies is given back by free.
func (s *Server) bodyOf(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, free func(), err error) {
	var held int64
	a := replyOf(w)
	free = func() { s.giveBody(a, held) }
	if limit == 0 {
		limit = api.DefaultLimit
	}
	if r.ContentLength > limit {
		return nil, free, tooLarge(limit)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, free, nil
	}
	if err := jsonOnly(r); err != nil {
		return nil, free, err
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readWithin)) // also where the answer may take long
	for from := http.MaxBytesReader(w, r.Body, limit); ; {
		if len(body) == cap(body) { // memory is taken as the body comes, never on its word
			more := max(int64(cap(body)), 4<<10)
			if !s.takeBody(a, more) {
				return nil, free, busy()
			}
			held += more
			body = append(make([]byte, 0, held), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return nil, free, tooLarge(limit)
		}
		if errors.Is(err, io.EOF) {
			_ = control.SetReadDeadline(time.Time{}) // or the connection would be given up while the answer is made
			return body, free, nil
		}
		if err != nil {
			return nil, free, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the body ends before it was all there, or takes too long to come", Cause: err}
		}
	}
}

func tooLarge(limit int64) error {
	return &holdfast.Error{Kind: api.ErrTooLarge, Message: "the body is larger than " + strconv.FormatInt(limit, 10) + " bytes: send less at a time"}
}

// jsonOnly refuses a body that does not say it is JSON, or is packed. One that says nothing is taken for JSON.
func jsonOnly(r *http.Request) error {
	if packed := r.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return &holdfast.Error{Kind: api.ErrUnsupported, Message: "send the body as it is: packed ones are not unpacked here"}
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(given)
	if err != nil || kind != "application/json" && kind != "application/merge-patch+json" || params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return &holdfast.Error{Kind: api.ErrUnsupported, Message: "send the body as JSON in UTF-8, with the header Content-Type: application/json"}
	}
	return nil
}
