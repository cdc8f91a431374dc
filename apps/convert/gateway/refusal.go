package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"syscall"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// A refusal is why there is no XML, in words that anybody may read.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	status  int
}

func (r refusal) Error() string { return r.Message }

// The refusals. Those of the 4xx are the document's or the asker's fault: asking again changes nothing. Those of the 5xx, and 408, are worth another try.
const (
	codeEmpty    = "EMPTY"
	codeBroken   = "INCOMPLETE"
	codeRequest  = "BAD_REQUEST"
	codeDamaged  = "PARSE_ERROR"
	codeLocked   = "LOCKED"
	codeMissing  = "INVALID_MAPPING"
	codeNowhere  = "NOT_FOUND"
	codeMethod   = "METHOD_NOT_ALLOWED"
	codeUnknown  = "UNKNOWN_MAPPING"
	codeSlow     = "TOO_SLOW"
	codeTooLarge = "TOO_LARGE"
	codeTooMuch  = "TOO_MUCH"
	codeNotPDF   = "NOT_PDF"
	codeTwoFaced = "TWO_FACED"
	codeType     = "WRONG_TYPE"
	codeFailed   = "FAILED"
	codeBusy     = "BUSY"
	codeTimeout  = "TIMEOUT"
)

var refusals = map[string]refusal{
	codeEmpty:    {status: 400, Message: "The file is empty."},
	codeBroken:   {status: 400, Message: "The file did not arrive whole."},
	codeRequest:  {status: 400, Message: "This request makes no sense."},
	codeDamaged:  {status: 400, Message: "The PDF is damaged."},
	codeLocked:   {status: 400, Message: "The PDF needs a password."},
	codeMissing:  {status: 400, Message: "The mapping needs something that the PDF does not hold."},
	codeNowhere:  {status: 404, Message: "There is nothing here. Send a PDF to POST /convert?mapping=NAME."},
	codeMethod:   {status: 405, Message: "This cannot be done here."},
	codeUnknown:  {status: 406, Message: "Unsupported mapping."},
	codeSlow:     {status: 408, Message: "The file came too slowly."},
	codeTooLarge: {status: 413, Message: "The file is too large."},
	codeTooMuch:  {status: 413, Message: "The PDF holds more than can be converted."},
	codeNotPDF:   {status: 415, Message: "The file is not a PDF."},
	codeTwoFaced: {status: 415, Message: "The file is a PDF and something else as well."},
	codeType:     {status: 415, Message: "Send the PDF itself, as Content-Type application/pdf."},
	codeFailed:   {status: 500, Message: "The PDF could not be converted, for a reason that is the gateway's."},
	codeBusy:     {status: 503, Message: "The gateway is busy."},
	codeTimeout:  {status: 504, Message: "The conversion took too long."},
}

// longestMessage is as much as a row of a list has room for.
const longestMessage = 200

// refuse makes the refusal of a code. Something more to say replaces its message, unless it is too long.
func refuse(code, message string) refusal {
	r, ok := refusals[code]
	if !ok {
		code, r = codeFailed, refusals[codeFailed]
	}
	r.Code = code
	if ok && message != "" && len(message) <= longestMessage {
		r.Message = message
	}
	return r
}

// faults are what can go wrong while a PDF is read. Everything else is the gateway's own failure.
var faults = []struct {
	err  error
	code string
}{
	{pdf.ErrNotPDF, codeNotPDF},
	{pdf.ErrTwoFaced, codeTwoFaced},
	{pdf.ErrDamaged, codeDamaged},
	{pdf.ErrLocked, codeLocked},
	{pdf.ErrTooMuch, codeTooMuch},
	{syscall.EFBIG, codeTooMuch}, // the XML outgrew what a file may have
	{syscall.ENOMEM, codeTooMuch},
	{context.DeadlineExceeded, codeTimeout},
}

// judge says which refusal an error is.
func judge(err error) refusal {
	var known refusal
	if errors.As(err, &known) {
		return known
	}
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return refuse(f.code, "")
		}
	}
	return refuse(codeFailed, "")
}

// answer sends a refusal.
func (r refusal) answer(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if r.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(busySeconds))
	}
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(r) // whoever does not listen any more has no use for it
}
