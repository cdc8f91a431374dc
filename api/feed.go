package api

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
	"github.com/holdfastdev/holdfast/apikey"
)

// EventsIn asks for events as they happen.
type EventsIn struct {
	After string   `query:"after" doc:"begin behind this number; with what happens next when left out"`
	Last  string   `header:"Last-Event-ID" doc:"go on behind this number; browsers say it by themselves when they come back"`
	Event []string `query:"event" doc:"only of these names, such as job.failed or group.*"`
	Kind  []string `query:"kind" doc:"only of jobs of these kinds"`
	Owner []string `query:"owner" doc:"only of these owners"`
	Group []string `query:"group" doc:"only of these groups and their members"`
	Code  []string `query:"code" doc:"only with these codes of failure"`

	Bound string // the owner that the caller is bound to
}

// Narrow keeps the events to an owner.
func (i *EventsIn) Narrow(owner string) error {
	i.Bound = owner
	return nil
}

// Events is the route by which one follows what happens.
var Events = Route[EventsIn, string]{Name: "follow-events", Method: "GET", Path: "/events", Scope: apikey.Viewer, Tag: "events", Long: true, About: "What happens, while it happens, as server-sent events. Who comes back with Last-Event-ID misses nothing."}

// Tail follows the feed from a number on and waits where it ends, until ctx does. A connection that breaks is made again, and nothing is missed; when
// the server stays away for longer than Config.Patience, the tail ends with that error.
func (d *Desk) Tail(ctx context.Context, after int64) iter.Seq2[holdfast.Feed, error] {
	return func(yield func(holdfast.Feed, error) bool) {
		t := &tail{after: after, yield: yield, well: time.Now()}
		for try := 0; ; try++ {
			before := t.well
			err := t.follow(ctx, d.c)
			if t.well != before {
				try = 0
			}
			wait := pauseFor(err, try)
			switch {
			case ctx.Err() != nil || errors.Is(err, errEnough):
				return
			case !errors.Is(err, holdfast.ErrUnavailable) || time.Since(t.well)+wait > d.c.cfg.Patience:
				yield(holdfast.Feed{}, err)
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

// A tail is how far somebody has followed the feed.
type tail struct {
	after int64
	yield func(holdfast.Feed, error) bool
	well  time.Time // when something was heard last
}

var errEnough = errors.New("the reader has had enough")

// follow reads one connection to its end.
func (t *tail) follow(ctx context.Context, c *Client) error {
	header := http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {strconv.FormatInt(t.after, 10)}}
	response, err := c.open(ctx, http.MethodGet, Prefix+Events.Path, header, http.NoBody)
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
			return away(ctx, err)
		}
		t.well = time.Now()
		line = strings.TrimRight(line, "\r\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if err := t.heard(name, data); err != nil {
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

// heard takes one event in.
func (t *tail) heard(name, data string) error {
	page := holdfast.Feed{}
	var said struct {
		Data   holdfast.Event `json:"data"` // of an event; the rest is said by a reset or a position
		Seq    int64          `json:"seq"`
		From   int64          `json:"from"`
		Missed int64          `json:"missed"`
		Head   int64          `json:"head"`
	}
	if data == "" {
		return nil
	}
	// Subscribers get events in this very form, in which durations are numbers.
	if err := stdjson.Unmarshal([]byte(data), &said); err != nil {
		return &holdfast.Error{Kind: ErrInternal, Message: "an event cannot be read: is the server newer than this program?", Cause: err}
	}
	switch name {
	case "position":
		t.after = said.Seq
		return nil
	case "reset":
		if said.From < t.after {
			return invalid("the feed ends at %d, and you have read to %d: that number is from another store; read on after %d, or after 0 from the beginning", said.From, t.after, said.From)
		}
		t.after = said.From
		page.Missed, page.Purged, page.Head = said.Missed, said.From, said.Head
		if said.Missed == 0 {
			return nil
		}
	default:
		t.after = said.Data.Seq
		page.Events, page.Head = []holdfast.Event{said.Data}, said.Data.Seq
	}
	page.Next = t.after
	if !t.yield(page, nil) {
		return errEnough
	}
	return nil
}
