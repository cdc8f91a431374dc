package client

import (
	"bufio"
	"context"
	stdjson "encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// Tail follows the feed after a number until ctx ends; at the end of the feed it waits for more. It reconnects when a connection breaks and misses no
// event. If the server stays unreachable for longer than Config.AbandonAfter, Tail yields that error and ends.
func (d *Operator) Tail(ctx context.Context, after int64) iter.Seq2[store.Feed, error] {
	return func(yield func(store.Feed, error) bool) {
		t := &tail{after: after, yield: yield, lastHeard: time.Now()}
		for try := 0; ; try++ {
			before := t.lastHeard
			err := t.follow(ctx, d.c)
			if t.lastHeard != before {
				try = 0
			}
			wait := pauseFor(err, try)
			switch {
			case ctx.Err() != nil || errors.Is(err, errStopped):
				return
			case !errors.Is(err, holdfast.ErrUnavailable) || time.Since(t.lastHeard)+wait > d.c.cfg.Patience:
				yield(store.Feed{}, err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
	}
}

// A tail is the position of one call of Tail.
type tail struct {
	after     int64
	yield     func(store.Feed, error) bool
	lastHeard time.Time // when the server last sent something
}

var errStopped = errors.New("the caller stopped iterating")

// follow reads one connection until it ends.
func (t *tail) follow(ctx context.Context, c *Client) error {
	header := http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {strconv.FormatInt(t.after, 10)}}
	response, err := c.open(ctx, http.MethodGet, api.Prefix+api.Events.Path, header, http.NoBody)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	from := bufio.NewReaderSize(response.Body, 64<<10)
	var name, data string
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return unreachable(ctx, err)
		}
		t.lastHeard = time.Now()
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if err := t.handle(name, data); err != nil {
				return err
			}
			name, data = "", ""
		case field == "event":
			name = value
		case field == "data":
			data += value
		}
	}
}

// An eventData is the data of a CloudEvent: an event whose duration is a text such as 1.5s. notify.Payload writes this form; a client does not import notify,
// because that would link the engine into every client.
type eventData struct {
	store.Event
	Took string `json:"took"`
}

// event returns the event with its duration. It returns an error if the text is not a duration.
func (d eventData) event() (e store.Event, err error) {
	e = d.Event
	if d.Took != "" {
		e.Took, err = time.ParseDuration(d.Took)
	}
	return e, err
}

// handle handles one event of the stream.
func (t *tail) handle(name, data string) error {
	page := store.Feed{}
	var message struct {
		Data   eventData `json:"data"` // of an event; the other fields are those of a reset or a position
		Seq    int64     `json:"seq"`
		From   int64     `json:"from"`
		Missed int64     `json:"missed"`
		Head   int64     `json:"head"`
	}
	if data == "" {
		return nil
	}
	// The data is a CloudEvent and not a body of the API, so the standard library decodes it.
	err := stdjson.Unmarshal([]byte(data), &message)
	event, bad := message.Data.event()
	if err = errors.Join(err, bad); err != nil {
		return &holdfast.Error{Err: api.ErrInternal, Message: "an event cannot be read: check that the server is not newer than this program", Cause: err}
	}
	switch name {
	case "position":
		t.after = message.Seq
		return nil
	case "reset":
		if message.From < t.after {
			return api.Invalid("the feed ends at %d, and you have read to %d: that number is from another store; read on after %d, or after 0 from the beginning", message.From, t.after, message.From)
		}
		t.after = message.From
		page.Missed, page.Purged, page.Head = message.Missed, message.From, message.Head
		if message.Missed == 0 {
			return nil
		}
	default:
		t.after = event.Seq
		page.Events, page.Head = []store.Event{event}, event.Seq
	}
	page.Next = t.after
	if !t.yield(page, nil) {
		return errStopped
	}
	return nil
}
