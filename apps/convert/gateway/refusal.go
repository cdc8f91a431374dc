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

// A refusal is why there is no XML, in a text that users may see.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	status  int
}

func (r refusal) Error() string { return r.Message }

// The codes of refusals. A 4xx is caused by the document or the request, and a retry does not help. A 5xx, and 408, is worth a retry.
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
	codeBroken:   {status: 400, Message: "The file did not arrive completely. Please send it again."},
	codeRequest:  {status: 400, Message: "The request is not valid."},
	codeDamaged:  {status: 400, Message: "The PDF is damaged. Please create it again."},
	codeLocked:   {status: 400, Message: "The PDF is protected by a password. Please remove the password and upload it again."},
	codeMissing:  {status: 400, Message: "The PDF does not contain a value that the mapping requires."},
	codeNowhere:  {status: 404, Message: "There is nothing at this path. Send a PDF to POST /convert?mapping=NAME."},
	codeMethod:   {status: 405, Message: "This method is not allowed here."},
	codeUnknown:  {status: 406, Message: "Unsupported mapping."},
	codeSlow:     {status: 408, Message: "The file arrived too slowly."},
	codeTooLarge: {status: 413, Message: "The file is too large."},
	codeTooMuch:  {status: 413, Message: "The PDF is too large or too complex to convert."},
	codeNotPDF:   {status: 415, Message: "The file is not a PDF."},
	codeTwoFaced: {status: 415, Message: "The file is a PDF and also another format."},
	codeType:     {status: 415, Message: "Send the PDF itself, as Content-Type application/pdf."},
	codeFailed:   {status: 500, Message: "The gateway could not convert the PDF because of an internal error."},
	codeBusy:     {status: 503, Message: "The gateway is busy."},
	codeTimeout:  {status: 504, Message: "The conversion took too long."},
}

// maxMessage is how many bytes of a message a row of the page can show.
const maxMessage = 200

// refuse returns the refusal of a code. A message replaces the code's own message unless it is too long.
func refuse(code, message string) refusal {
	r, ok := refusals[code]
	if !ok {
		code, r = codeFailed, refusals[codeFailed]
	}
	r.Code = code
	if ok && message != "" && len(message) <= maxMessage {
		r.Message = message
	}
	return r
}

// errorCodes maps errors of reading a PDF to codes. Any other error is FAILED, an error of the gateway.
var errorCodes = []struct {
	err  error
	code string
}{
	{pdf.ErrNotPDF, codeNotPDF},
	{pdf.ErrTwoFaced, codeTwoFaced},
	{pdf.ErrDamaged, codeDamaged},
	{pdf.ErrLocked, codeLocked},
	{pdf.ErrTooMuch, codeTooMuch},
	{syscall.EFBIG, codeTooMuch}, // the XML exceeded the limit of file size
	{syscall.ENOMEM, codeTooMuch},
	{context.DeadlineExceeded, codeTimeout},
}

// refusalOf returns the refusal of an error.
func refusalOf(err error) refusal {
	var known refusal
	if errors.As(err, &known) {
		return known
	}
	for _, f := range errorCodes {
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
	_ = json.NewEncoder(w).Encode(r) // the client may be gone
}
