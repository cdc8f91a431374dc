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

// childArgument makes a process of this program one that reads a PDF.
const childArgument = "gateway-child"

// childMemory is how much memory a process that reads a PDF may have, besides what it takes to be a process.
const childMemory = 1 << 30

// An order is what such a process is to do. It comes by its standard input, which then stays open for as long as somebody wants the answer.
type order struct {
	Sheet   sheet         `json:"sheet"`
	Reader  string        `json:"reader"`
	Mapping string        `json:"mapping"`
	Own     []byte        `json:"own,omitempty"` // the text of a mapping of the user's own
	CPU     time.Duration `json:"cpu"`
	Timeout time.Duration `json:"timeout"`
	Probe   bool          `json:"probe,omitempty"` // only show that you could
}

// A report is what it has to say at the end.
type report struct {
	Pages   int    `json:"pages"`
	Code    string `json:"code,omitempty"` // of a refusal
	Message string `json:"message,omitempty"`
	Cause   string `json:"cause,omitempty"` // for the log
}

// Main makes a process that a gateway started into one that reads a PDF, and does not return. In any other process it does nothing. It must come first in main.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != childArgument {
		return
	}
	if err := obey(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// obey does what it is told, under limits from before the first byte of the PDF is read.
func obey(from io.Reader) error {
	orders := json.NewDecoder(from)
	var o order
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("this is a part of the gateway, which starts it itself: run the gateway: %w", err)
	}
	go func() {
		var more order
		_ = orders.Decode(&more) // it ends when whoever started us is gone or has lost interest
		endAll()
	}()
	if err := pdf.Confine(childMemory, o.CPU); err != nil {
		return fmt.Errorf("the limits could not be set: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	pages, err := o.convert(ctx)
	if err == nil {
		return o.say(report{Pages: pages})
	}
	r := judge(err)
	return o.say(report{Code: r.Code, Message: r.Message, Cause: err.Error()})
}

// say writes the report: whole or not at all, because the gateway may look at any moment.
func (o order) say(r report) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	part := o.Sheet.report() + ".part"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, o.Sheet.report())
}

// convert reads the PDF and writes the XML.
func (o order) convert(ctx context.Context) (pages int, err error) {
	reader, err := choose(o.Reader)
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

// mapping finds a built-in mapping, or reads the user's own as the gateway read it.
func (o order) mapping() (mapping, error) {
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
