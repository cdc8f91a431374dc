package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Config says how a Client speaks to its server. The zero value works, with a server that asks for no key.
type Config struct {
	Key string // an API key
	// HTTP does the calls; one with sensible time limits and enough connections when nil.
	HTTP *http.Client
	// Patience is how long a question that may be asked again is asked again while the server is away or overloaded; 10 s when zero, not
	// at all when negative. Whoever calls may set an end earlier by its context.
	Patience time.Duration
}

// A Client speaks to a server. It is safe for concurrent use.
type Client struct {
	base string
	cfg  Config
}

// Dial makes a client for a server, such as http://127.0.0.1:4747. It asks nothing yet.
func Dial(address string, cfg Config) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, invalid("the server %.100q: give an address such as http://127.0.0.1:4747, without a user", address)
	}
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Second)
	if cfg.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 64
		transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
		cfg.HTTP = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Client{base: strings.TrimSuffix(u.String(), "/"), cfg: cfg}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() error {
	c.cfg.HTTP.CloseIdleConnections()
	return nil
}

// call asks one question. What can be asked twice without harm is asked again while the server cannot be reached or says that it cannot now: routes
// that only look, and those of which the caller says so.
func call[In, Out any](ctx context.Context, c *Client, r Route[In, Out], in In, again ...bool) (out Out, err error) {
	path, header, body, err := Encode(Prefix+r.Path, in)
	if err != nil {
		return out, err
	}
	var text []byte
	if body != nil {
		if text, err = Marshal(body); err != nil {
			return out, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "this cannot be sent: " + clean(err.Error()), Cause: err}
		}
		header.Set("Content-Type", "application/json")
	}
	header.Set("Accept", "application/json")
	repeatable := r.Method == http.MethodGet || len(again) > 0 && again[0]
	for begun, try := time.Now(), 0; ; try++ {
		var answer []byte
		answer, err = c.send(ctx, r.Method, path, header, text)
		if err == nil && len(answer) > 0 {
			if err = UnmarshalLoose(answer, &out); err != nil {
				err = unreadableAnswer(err)
			}
		}
		wait := pauseFor(err, try)
		if err == nil || !repeatable || !errors.Is(err, holdfast.ErrUnavailable) || time.Since(begun)+wait > c.cfg.Patience {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(wait):
		}
	}
}

// pauseFor is how long to wait before a question is asked again.
func pauseFor(err error, try int) time.Duration {
	var said *holdfast.Error
	if errors.As(err, &said) && said.RetryAfter > 0 {
		return said.RetryAfter
	}
	return time.Duration(float64(min(2*time.Second, 50*time.Millisecond<<min(try, 6))) * (0.5 + rand.Float64()))
}

// send does one call and answers with the body of a good answer, or with the error that the other tells.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, text []byte) ([]byte, error) {
	response, err := c.open(ctx, method, path, header, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+max(0, min(response.ContentLength, WorkLimit)))) // room enough to be read in one go
	if _, err := answer.ReadFrom(response.Body); err != nil {
		return nil, away(ctx, err)
	}
	return answer.Bytes(), nil
}

// open begins a call and answers with a good answer, whose body is the caller's to read and close.
func (c *Client) open(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header = header.Clone()
	if c.cfg.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	response, err := c.cfg.HTTP.Do(request)
	if err != nil {
		return nil, away(ctx, err)
	}
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	var p Problem
	if UnmarshalLoose(answer, &p) != nil || p.Code == "" {
		return nil, &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: fmt.Sprintf("the server answered with %s: is it a Holdfast server?", response.Status)}
	}
	return nil, p.Err()
}

func unreadableAnswer(err error) error {
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "the server's answer cannot be read: is it a Holdfast server, and not older than this client?", Cause: err}
}

// away says that the server could not be asked.
func away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "the server cannot be reached: is it running, and is the address right?", Cause: err}
}
