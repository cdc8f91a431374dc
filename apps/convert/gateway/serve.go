package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// drainTimeout is how long the rest of a refused file is read, so that the client can read the answer.
const drainTimeout = 5 * time.Second

// routes returns the handler of all routes.
func (g *gateway) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range []struct {
		method, path string
		serve        http.HandlerFunc
	}{
		{"POST", "/convert", g.convert},
		{"GET", "/mappings", g.list},
		{"GET", "/schemas/{file}", g.schema},
		{"GET", "/healthz", g.healthz},
	} {
		mux.HandleFunc(r.method+" "+r.path, r.serve)
		mux.HandleFunc(r.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", r.method)
			refuse(codeMethod, "Use "+r.method+" here.").answer(w)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(codeNowhere, "").answer(w) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// convert answers with the XML of a PDF, or with a refusal.
func (g *gateway) convert(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	m, err := g.checkRequest(r)
	if err != nil {
		g.drain(w, r)
		g.writeRefusal(w, m, err)
		return
	}
	leave, err := g.queue.admit()
	if err != nil {
		g.writeRefusal(w, m, err)
		return
	}
	defer leave()
	at, remove, err := g.temp.create()
	if err != nil {
		g.writeRefusal(w, m, err)
		return
	}
	defer func() {
		if err := remove(); err != nil {
			g.cfg.Log.Error("cannot delete the temporary files of a conversion", "error", err)
		}
	}()
	if err := g.receive(w, r, at); err != nil {
		g.drain(w, r)
		g.writeRefusal(w, m, err)
		return
	}
	done, err := g.convertInSlot(r.Context(), g.request(at, m))
	if err != nil {
		g.writeRefusal(w, m, err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.cfg.Timeout)) // a client that does not read must not keep the file open
	if err := send(w, at, done.Pages); err != nil {
		g.cfg.Log.Warn("cannot send the XML", "mapping", m.Name, "error", err)
		return
	}
	g.cfg.Log.Info("converted", "mapping", m.Name, "pages", done.Pages, "duration_ms", time.Since(began).Milliseconds())
}

// checkRequest checks a request and finds its mapping. It reads nothing of the file.
func (g *gateway) checkRequest(r *http.Request) (mapping, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return mapping{}, refuse(codeRequest, "The query is not valid. Use /convert?mapping=NAME.")
	}
	if len(query["mapping"]) != 1 {
		return mapping{}, refuse(codeRequest, "Choose one mapping: /convert?mapping=NAME.")
	}
	m, ok := g.find(query.Get("mapping"))
	if !ok {
		return mapping{}, refuse(codeUnknown, "Unsupported mapping. Available: "+strings.Join(g.names(), ", ")+".")
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/pdf" && kind != "application/octet-stream" || r.Header.Get("Content-Encoding") != "" {
		return m, refuse(codeType, "")
	}
	if r.ContentLength == 0 {
		return m, refuse(codeEmpty, "")
	}
	if r.ContentLength > g.cfg.MaxBytes {
		return m, g.tooLarge()
	}
	return m, nil
}

func (g *gateway) names() (all []string) {
	for _, m := range g.mappings {
		all = append(all, m.Name)
	}
	return all
}

func (g *gateway) tooLarge() error {
	return refuse(codeTooLarge, "The file is too large. The limit is "+strconv.FormatInt(g.cfg.MaxBytes, 10)+" bytes.")
}

// receive writes the file to the workspace, up to the maximum size. It may take as long as a conversion.
func (g *gateway) receive(w http.ResponseWriter, r *http.Request, at workspace) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(g.cfg.Timeout)) // without deadlines, the server's own limits apply
	file, err := os.OpenFile(at.source(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	body := &clientReader{Reader: http.MaxBytesReader(w, r.Body, g.cfg.MaxBytes)}
	n, err := io.Copy(file, body)
	var over *http.MaxBytesError
	switch err = errors.Join(err, file.Close()); {
	case errors.As(body.err, &over):
		return g.tooLarge()
	case errors.Is(body.err, os.ErrDeadlineExceeded):
		return refuse(codeSlow, "")
	case body.err != nil:
		return errors.Join(refuse(codeBroken, ""), body.err)
	case err != nil:
		return err
	case n == 0:
		return refuse(codeEmpty, "")
	}
	_ = control.SetReadDeadline(time.Time{})
	return nil
}

// A clientReader keeps errors of the client, to distinguish them from errors of the gateway.
type clientReader struct {
	io.Reader
	err error
}

func (s *clientReader) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// drain reads part of what the client still sends. If the connection were closed while the client sends, the client might not receive the answer.
func (g *gateway) drain(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(min(drainTimeout, g.cfg.Timeout)))
	_, _ = io.CopyN(io.Discard, r.Body, g.cfg.MaxBytes)
}

// convertInSlot waits for a slot and converts the PDF.
func (g *gateway) convertInSlot(ctx context.Context, o childRequest) (childReply, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	free, err := g.queue.acquire(ctx)
	if err != nil {
		return childReply{}, err
	}
	defer free()
	return g.run(ctx, o)
}

// send sends a complete result.
func send(w http.ResponseWriter, at workspace, pages int) error {
	file, err := os.Open(at.result())
	if err != nil {
		refuse(codeFailed, "").answer(w)
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		refuse(codeFailed, "").answer(w)
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/xml; charset=utf-8")
	h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	h.Set("X-Pages", strconv.Itoa(pages))
	_, err = io.Copy(w, file)
	return err
}

// writeRefusal answers with a refusal. The details are only logged.
func (g *gateway) writeRefusal(w http.ResponseWriter, m mapping, err error) {
	why, level := refusalOf(err), g.cfg.Log.Info
	if errors.Is(err, context.Canceled) { // the client is gone; if it is not, it may retry
		why, err = refuse(codeBusy, ""), errClientGone
	} else if why.status >= http.StatusInternalServerError {
		level = g.cfg.Log.Error
	}
	level("refused", "mapping", m.Name, "status", why.status, "code", why.Code, "error", err)
	why.answer(w)
}

// list answers with the list of mappings.
func (g *gateway) list(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, struct {
		Mappings []mapping `json:"mappings"`
	}{g.mappings})
}

// schema answers with the XML schema of a mapping.
func (g *gateway) schema(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(r.PathValue("file"), ".xsd")
	m, found := g.find(name)
	if !ok || !found {
		refuse(codeNowhere, "There is no such schema. Available: "+strings.Join(g.names(), ".xsd, ")+".xsd.").answer(w)
		return
	}
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	_, _ = w.Write(m.schema)
}

func writeJSON(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(what)
}
