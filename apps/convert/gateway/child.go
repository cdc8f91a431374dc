package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// childArgument starts this program as a child process that reads one PDF.
const childArgument = "gateway-child"

// childMemory is how much memory a child process may use for a PDF, in addition to what the process itself needs.
const childMemory = 1 << 30

// A childRequest tells a child process what to do. It is sent on standard input. The gateway keeps standard input open for as long as it wants the answer; the child
// process exits when it is closed.
type childRequest struct {
	Sheet   workspace     `json:"sheet"`
	Reader  string        `json:"reader"`
	Mapping string        `json:"mapping"`
	Own     []byte        `json:"own,omitempty"` // the text of a custom mapping
	CPU     time.Duration `json:"cpu"`
	Timeout time.Duration `json:"timeout"`
	Probe   bool          `json:"probe,omitempty"` // health check: start and answer, without a PDF
}

// A childReply is the result of a child process.
type childReply struct {
	Pages   int    `json:"pages"`
	Code    string `json:"code,omitempty"` // of a refusal
	Message string `json:"message,omitempty"`
	Cause   string `json:"cause,omitempty"` // for the log
}

// Main runs the child process and does not return if the gateway started this process to read a PDF. Otherwise it does nothing. It must be called first in main.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != childArgument {
		return
	}
	if err := runChild(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runChild executes one request. The limits are set before the first byte of the PDF is read.
func runChild(from io.Reader) error {
	requests := json.NewDecoder(from)
	var o childRequest
	if err := requests.Decode(&o); err != nil {
		return fmt.Errorf("only the gateway starts this process: run 'convert gateway' instead: %w", err)
	}
	go func() {
		var more childRequest
		_ = requests.Decode(&more) // returns when the gateway has ended or closed our standard input
		killOwnGroup()
	}()
	if err := pdf.Confine(childMemory, o.CPU); err != nil {
		return fmt.Errorf("cannot set the limits: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	pages, err := o.convert(ctx)
	if err == nil {
		return o.writeReply(childReply{Pages: pages})
	}
	r := refusalOf(err)
	return o.writeReply(childReply{Code: r.Code, Message: r.Message, Cause: err.Error()})
}

// writeReply writes the reply to its file atomically, because the gateway may read it at any time.
func (o childRequest) writeReply(r childReply) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	part := o.Sheet.reply() + ".part"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, o.Sheet.reply())
}

// convert reads the PDF and writes the XML.
func (o childRequest) convert(ctx context.Context) (pages int, err error) {
	reader, err := chooseReader(o.Reader)
	if err != nil || o.Probe {
		return 0, err
	}
	m, err := o.mapping()
	if err != nil {
		return 0, err
	}
	source, err := os.Open(o.Sheet.source())
	if err != nil {
		return 0, err
	}
	defer source.Close()
	document, err := reader.Read(ctx, source, pdf.Limits{})
	if err != nil {
		return 0, err
	}
	result, err := os.OpenFile(o.Sheet.result(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	return len(document.Pages), errors.Join(m.writeTo(result, document), result.Close())
}

// mapping returns a built-in mapping, or parses the custom mapping that the gateway sent.
func (o childRequest) mapping() (mapping, error) {
	if o.Own != nil {
		return parseMapping(o.Mapping, o.Own)
	}
	for _, m := range builtin {
		if m.Name == o.Mapping {
			return m, nil
		}
	}
	return mapping{}, refuse(codeUnknown, "")
}
