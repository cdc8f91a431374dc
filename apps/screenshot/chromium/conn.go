package chromium

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// ErrLost is the error of every call when the connection to the browser has ended, because its process ended or sent what it should not.
var ErrLost = errors.New("the browser has ended")

const (
	maxMessage = 192 << 20 // bytes of a message of the browser; a page can make it send messages of any size
	maxWaiting = 1024      // commands that are not written yet
)

// A ProtocolError is the answer of the browser to a command that it cannot execute.
type ProtocolError struct {
	Method  string
	Code    int64
	Message string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the browser answers %s with %q (%d)", e.Method, e.Message, e.Code)
}

// A message is a command, an answer or an event. Commands go to the browser itself without a session, and otherwise to the page of the session.
type message struct {
	ID        int64           `json:"id,omitzero"`
	SessionID string          `json:"sessionId,omitzero"`
	Method    string          `json:"method,omitzero"`
	Params    jsonv2.Value    `json:"params,omitzero"`
	Result    jsonv2.Value    `json:"result,omitzero"`
	Error     *protocolAnswer `json:"error,omitzero"`
}

type protocolAnswer struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// A conn is the connection to a browser over a pair of pipes, on which every message ends with a zero byte. It is safe for concurrent use.
type conn struct {
	commands chan []byte
	lost     chan struct{} // closed when no answer will come any more

	mu       sync.Mutex
	next     int64
	answers  map[int64]chan message
	handlers map[string]func(method string, params jsonv2.Value) // by session
}

// newConn starts to read and write. Both ends are closed when reading fails or end is called.
func newConn(from io.ReadCloser, to io.WriteCloser) (c *conn, end func()) {
	c = &conn{
		commands: make(chan []byte, maxWaiting), lost: make(chan struct{}),
		answers: map[int64]chan message{}, handlers: map[string]func(string, jsonv2.Value){},
	}
	var once sync.Once
	end = func() {
		once.Do(func() {
			_ = from.Close()
			_ = to.Close()
		})
	}
	go func() {
		defer end()
		defer close(c.lost)
		c.read(bufio.NewReaderSize(from, 256<<10))
	}()
	go func() {
		defer end()
		for {
			select {
			case command := <-c.commands:
				if _, err := to.Write(command); err != nil {
					return
				}
			case <-c.lost:
				return
			}
		}
	}()
	return c, end
}

// read passes on messages until the browser ends. Handlers of events run here, so they must not wait for the browser.
func (c *conn) read(from *bufio.Reader) {
	for {
		raw, err := readMessage(from)
		if err != nil {
			return
		}
		var m message
		if jsonv2.Unmarshal(raw, &m, decoding) != nil {
			return // what is not JSON does not come from a browser that works
		}
		c.mu.Lock()
		handle, answer := c.handlers[m.SessionID], c.answers[m.ID]
		delete(c.answers, m.ID)
		c.mu.Unlock()
		switch {
		case m.ID != 0 && answer != nil:
			answer <- m // it has a buffer
		case m.Method != "" && handle != nil:
			handle(m.Method, m.Params)
		}
	}
}

// readMessage reads up to the next zero byte.
func readMessage(from *bufio.Reader) (whole []byte, err error) {
	for {
		part, err := from.ReadSlice(0)
		whole = append(whole, part...)
		switch {
		case err == nil:
			return whole[:len(whole)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(whole) > maxMessage:
			return nil, fmt.Errorf("the browser sent a message of more than %d bytes", maxMessage)
		}
	}
}

// Texts of pages need not be valid UTF-8.
var decoding = jsonv2.AllowInvalidUTF8(true)

// A Session is the browser itself, or one page of it.
type Session struct {
	conn *conn
	id   string
}

// Call executes a command and returns its answer.
func Call[P, R any](ctx context.Context, s *Session, command cdp.Command[P, R], params P) (R, error) {
	return Begin(s, command, params).Wait(ctx)
}

// A Pending is a command whose answer is not read yet.
type Pending[R any] struct {
	session *Session
	method  string
	id      int64
	answer  chan message
	err     error // the command was not sent
}

// Begin sends a command. The browser executes the commands of a session in the order in which they were sent.
func Begin[P, R any](s *Session, command cdp.Command[P, R], params P) Pending[R] {
	id, answer, err := s.write(command.Method, params, true)
	return Pending[R]{s, command.Method, id, answer, err}
}

// Wait returns the answer. It is called at most once.
func (p Pending[R]) Wait(ctx context.Context) (result R, err error) {
	if p.err != nil {
		return result, p.err
	}
	c := p.session.conn
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.answers, p.id)
	}()
	select {
	case m := <-p.answer:
		if m.Error != nil {
			return result, &ProtocolError{p.method, m.Error.Code, m.Error.Message}
		}
		return result, jsonv2.Unmarshal(m.Result, &result, decoding)
	case <-c.lost:
		return result, ErrLost
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// Send executes a command without waiting for its answer. It may be called by a handler of events.
func Send[P, R any](s *Session, command cdp.Command[P, R], params P) {
	_, _, _ = s.write(command.Method, params, false)
}

// write hands a command to the connection. It never waits: a browser that does not read its commands is as good as lost.
func (s *Session) write(method string, params any, answered bool) (id int64, answer chan message, err error) {
	encoded, err := jsonv2.Marshal(params, decoding)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot encode the parameters of %s: %w", method, err)
	}
	answer = make(chan message, 1)
	s.conn.mu.Lock()
	s.conn.next++
	id = s.conn.next
	if answered {
		s.conn.answers[id] = answer
	}
	s.conn.mu.Unlock()
	command, err := jsonv2.Marshal(message{ID: id, SessionID: s.id, Method: method, Params: encoded}, decoding)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot encode %s: %w", method, err)
	}
	select {
	case s.conn.commands <- append(command, 0):
		return id, answer, nil
	default:
		return 0, nil, fmt.Errorf("%w: it has not read %d commands", ErrLost, maxWaiting)
	}
}

// Handle sets the handler of the session's events. The handler must return at once and must not call Call.
func (s *Session) Handle(handler func(method string, params jsonv2.Value)) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if handler == nil {
		delete(s.conn.handlers, s.id)
		return
	}
	s.conn.handlers[s.id] = handler
}

// Decode decodes the parameters of an event.
func Decode[E any](_ cdp.Event[E], params jsonv2.Value) (event E, err error) {
	return event, jsonv2.Unmarshal(params, &event, decoding)
}
