package client

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
	"github.com/holdfastdev/holdfast/internal/api"
)

// Config configures a Client. The zero value works with a server that needs no key.
type Config struct {
	Key string // an API key
	// HTTP sends the requests. When nil, Dial makes one with time limits and up to 64 idle connections.
	HTTP *http.Client
	// Patience is how long the client repeats a request that is safe to repeat while the server cannot be reached or is overloaded: 10 s when zero, no
	// repetition when negative. The context of a call may end it earlier.
	Patience time.Duration
}

// A Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base string
	cfg  Config
}

// Dial makes a client for a server, such as http://127.0.0.1:4747. It opens no connection. A bad address is ErrInvalid. The error does not contain an address
// with a password or a key.
func Dial(address string, cfg Config) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		shown := ""
		if !strings.ContainsAny(address, "@?") && !strings.HasPrefix(address, "hf_") {
			shown = fmt.Sprintf(" %.100q", address)
		}
		return nil, api.Invalid("the server address%s is not usable: give one such as http://127.0.0.1:4747, without a user name", shown)
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

// Close closes idle connections.
func (c *Client) Close() error {
	c.cfg.HTTP.CloseIdleConnections()
	return nil
}

// call sends one request. A request that is safe to repeat is repeated while the server cannot be reached or answers ErrUnavailable, for as long as
// Config.AbandonAfter. Safe are GET routes, and those for which the caller passes again = true.
func call[In, Out any](ctx context.Context, c *Client, r api.Route[In, Out], in In, again ...bool) (out Out, err error) {
	path, header, body, err := api.Encode(api.Prefix+r.Path, in)
	if err != nil {
		return out, err
	}
	var text []byte
	if body != nil {
		if text, err = api.Marshal(body); err != nil {
			return out, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the request cannot be encoded as JSON: " + api.Clean(err.Error()), Cause: err}
		}
		header.Set("Content-Type", "application/json")
	}
	header.Set("Accept", "application/json")
	repeatable := r.Method == http.MethodGet || len(again) > 0 && again[0]
	for begun, try := time.Now(), 0; ; try++ {
		var answer []byte
		answer, err = c.send(ctx, r.Method, path, header, text)
		if err == nil && len(answer) > 0 {
			if err = api.UnmarshalLoose(answer, &out); err != nil {
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

// pauseFor is the time to wait before a request is repeated: what the server asked for, or an exponential backoff with jitter from 50 ms to 2 s.
func pauseFor(err error, try int) time.Duration {
	var herr *holdfast.Error
	if errors.As(err, &herr) && herr.RetryAfter > 0 {
		return herr.RetryAfter
	}
	return time.Duration(float64(min(2*time.Second, 50*time.Millisecond<<min(try, 6))) * (0.5 + rand.Float64()))
}

// send does one request. It returns the body of a successful answer, or the error that the answer describes.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, text []byte) ([]byte, error) {
	response, err := c.open(ctx, method, path, header, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+max(0, min(response.ContentLength, api.WorkLimit)))) // large enough to be read without growing
	if _, err := answer.ReadFrom(response.Body); err != nil {
		return nil, unreachable(ctx, err)
	}
	return answer.Bytes(), nil
}

// open starts one request and returns a successful answer. The caller reads and closes its body.
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
		return nil, unreachable(ctx, err)
	}
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	var p api.Problem
	if api.UnmarshalLoose(answer, &p) != nil || p.Code == "" {
		return nil, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: fmt.Sprintf("the server answered %s without a problem document: check that the address is that of a Holdfast server", response.Status)}
	}
	return nil, p.Err()
}

func unreadableAnswer(err error) error {
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the server's answer cannot be read: check that it is a Holdfast server and not older than this client", Cause: err}
}

// unreachable is the error for a server that could not be reached. If the caller's context ended, it is the context's error.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the server cannot be reached: check that it is running and that the address is right", Cause: err}
}
