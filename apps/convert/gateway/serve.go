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

// drainFor is how long the rest of a refused file is taken, so that whoever sends it gets to read why.
const drainFor = 5 * time.Second

// routes is everything that is served.
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

// convert answers with the XML of a PDF, or with why there is none.
func (g *gateway) convert(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	m, err := g.asked(r)
	if err != nil {
		g.drain(w, r)
		g.refused(w, m, err)
		return
	}
	leave, err := g.line.enter()
	if err != nil {
		g.refused(w, m, err)
		return
	}
	defer leave()
	at, remove, err := g.desk.lay()
	if err != nil {
		g.refused(w, m, err)
		return
	}
	defer func() {
		if err := remove(); err != nil {
			g.cfg.Log.Error("what a conversion left cannot be removed", "error", err)
		}
	}()
	if err := g.receive(w, r, at); err != nil {
		g.drain(w, r)
		g.refused(w, m, err)
		return
	}
	done, err := g.work(r.Context(), g.order(at, m))
	if err != nil {
		g.refused(w, m, err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.cfg.Timeout)) // somebody who does not listen must not keep the file here
	if err := send(w, at, done.Pages); err != nil {
		g.cfg.Log.Warn("the XML was made and could not be sent", "mapping", m.Name, "error", err)
		return
	}
	g.cfg.Log.Info("converted", "mapping", m.Name, "pages", done.Pages, "duration_ms", time.Since(began).Milliseconds())
}

// asked finds what a request wants, before anything of the file is read.
func (g *gateway) asked(r *http.Request) (mapping, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return mapping{}, refuse(codeRequest, "The address cannot be read: ask for /convert?mapping=NAME.")
	}
	if len(query["mapping"]) != 1 {
		return mapping{}, refuse(codeRequest, "Name one mapping: /convert?mapping=NAME.")
	}
	m, ok := g.find(query.Get("mapping"))
	if !ok {
		return mapping{}, refuse(codeUnknown, "Unsupported mapping. There are: "+strings.Join(g.names(), ", ")+".")
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
	return refuse(codeTooLarge, "The file is too large: "+strconv.FormatInt(g.cfg.MaxBytes, 10)+" bytes are the limit.")
}

// receive takes the file as it comes, and no more of it than is allowed. A sender has as long for it as a conversion may take.
func (g *gateway) receive(w http.ResponseWriter, r *http.Request, at sheet) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(g.cfg.Timeout)) // where that cannot be done, the server's own limits hold
	file, err := os.OpenFile(at.source(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	body := &sender{Reader: http.MaxBytesReader(w, r.Body, g.cfg.MaxBytes)}
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

// sender remembers what went wrong on its side, to be told from what goes wrong on ours.
type sender struct {
	io.Reader
	err error
}

func (s *sender) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// drain takes some of what is still coming. A connection that is closed on somebody who still sends may lose the answer on its way.
func (g *gateway) drain(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(min(drainFor, g.cfg.Timeout)))
	_, _ = io.CopyN(io.Discard, r.Body, g.cfg.MaxBytes)
}

// work waits for a slot and has the PDF converted.
func (g *gateway) work(ctx context.Context, o order) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	free, err := g.line.slot(ctx)
	if err != nil {
		return report{}, err
	}
	defer free()
	return g.run(ctx, o)
}

// send sends a result that is there whole.
func send(w http.ResponseWriter, at sheet, pages int) error {
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

// refused answers with a refusal, and tells the log what nobody else may know.
func (g *gateway) refused(w http.ResponseWriter, m mapping, err error) {
	why, level := judge(err), g.cfg.Log.Info
	if errors.Is(err, context.Canceled) { // whoever asked has gone; should they be there after all, they may ask again
		why, err = refuse(codeBusy, ""), errGone
	} else if why.status >= http.StatusInternalServerError {
		level = g.cfg.Log.Error
	}
	level("refused", "mapping", m.Name, "status", why.status, "code", why.Code, "error", err)
	why.answer(w)
}

// list answers with the mappings there are.
func (g *gateway) list(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, struct {
		Mappings []mapping `json:"mappings"`
	}{g.mappings})
}

// schema answers with the schema that a mapping's XML is valid against.
func (g *gateway) schema(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(r.PathValue("file"), ".xsd")
	m, found := g.find(name)
	if !ok || !found {
		refuse(codeNowhere, "There is no such schema. There are: "+strings.Join(g.names(), ".xsd, ")+".xsd.").answer(w)
		return
	}
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	_, _ = w.Write(m.schema)
}

func answerJSON(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(what)
}
