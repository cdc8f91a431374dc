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
	"github.com/holdfastdev/holdfast/internal/api"
)

// bodyOf reads a JSON body of at most limit bytes. The memory for it is taken from the budget as the body arrives, so that a large Content-Length alone
// costs nothing. The caller must call free in every case, also on error.
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
	_ = control.SetReadDeadline(time.Now().Add(readWithin)) // also for routes whose answer may take long
	for from := http.MaxBytesReader(w, r.Body, limit); ; {
		if len(body) == cap(body) { // memory is taken for bytes that have arrived, not for the Content-Length
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
			_ = control.SetReadDeadline(time.Time{}) // an expired deadline would break the connection while the answer is made
			return body, free, nil
		}
		if err != nil {
			return nil, free, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the body is incomplete, or arrives too slowly", Cause: err}
		}
	}
}

func tooLarge(limit int64) error {
	return &holdfast.Error{Err: api.ErrTooLarge, Message: "the body is larger than " + strconv.FormatInt(limit, 10) + " bytes: send less at a time"}
}

// jsonOnly refuses a body with another content type than JSON, or with a content encoding. Without a Content-Type it is taken for JSON.
func jsonOnly(r *http.Request) error {
	if packed := r.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return &holdfast.Error{Err: api.ErrUnsupported, Message: "the body is compressed: send it without a Content-Encoding"}
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(given)
	if err != nil || kind != "application/json" && kind != "application/merge-patch+json" || params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return &holdfast.Error{Err: api.ErrUnsupported, Message: "the content type is not supported: send JSON in UTF-8 with the header Content-Type: application/json"}
	}
	return nil
}
