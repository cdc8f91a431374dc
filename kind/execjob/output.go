package execjob

import (
	"fmt"
	"strings"
	"sync"

	"github.com/holdfastdev/holdfast/failure"
)

// An output keeps the beginning and the end of what a program writes, and discards the middle, so that the program never blocks on its output.
type output struct {
	half int

	mu   sync.Mutex
	head []byte
	tail []byte // a ring once it is full
	next int    // where the ring is written next
	lost int64  // discarded bytes
}

func newOutput(limit int) *output { return &output{half: limit / 2} }

// Write accepts all of text. It never fails.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := len(text)
	if free := o.half - len(o.head); free > 0 {
		n := min(free, len(text))
		o.head = append(o.head, text[:n]...)
		text = text[n:]
	}
	if over := len(text) - o.half; over > 0 {
		o.lost += int64(over)
		text = text[over:]
	}
	for _, c := range text {
		if len(o.tail) < o.half {
			o.tail = append(o.tail, c)
			continue
		}
		o.tail[o.next] = c
		o.next = (o.next + 1) % o.half
		o.lost++
	}
	return all, nil
}

// String returns the kept parts, with a note of how many bytes were left out between them.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	if o.lost == 0 {
		return string(o.head) + tail
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", o.head, o.lost, tail)
}

// text returns an output as it is stored with the job: valid UTF-8 and, unless Verbatim, without secrets.
func (p Program) text(o *output) string {
	text := strings.ToValidUTF8(o.String(), "\uFFFD")
	if p.Verbatim {
		return text
	}
	return scrub(text, p.MaxOutput+200)
}

// scrub removes secrets from a text of any length. It works in chunks, because failure.Scrub cuts its result at 4 KiB.
func scrub(text string, limit int) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return '?' // an escape sequence would be four times as long
		}
		return c
	}, text)
	var all strings.Builder
	for len(text) > 0 {
		cut := chunkSize(text)
		all.WriteString(failure.Scrub(text[:cut]))
		text = text[cut:]
	}
	clean := all.String()
	if len(clean) <= limit {
		return clean
	}
	o := newOutput(limit)
	_, _ = o.Write([]byte(clean))
	return strings.ToValidUTF8(o.String(), "\uFFFD")
}

// chunkSize returns how much of a text is scrubbed at once: some lines, or a part of a very long line that ends at a character that is not part of a secret. A PEM
// block is never split.
func chunkSize(text string) int {
	const together = 3 << 10
	if len(text) <= together {
		return len(text)
	}
	cut := strings.LastIndexByte(text[:together], '\n') + 1
	if cut == 0 {
		cut = strings.LastIndexAny(text[:together], ",;&)}]") + 1
	}
	if cut == 0 {
		cut = strings.IndexByte(text, '\n') + 1
	}
	if cut == 0 {
		cut = len(text)
	}
	begin := strings.LastIndex(text[:cut], "-----BEGIN")
	if begin < 0 || strings.Contains(text[begin:cut], "-----END") {
		return cut
	}
	end := strings.Index(text[cut:], "-----END")
	if end < 0 {
		return len(text)
	}
	line := strings.IndexByte(text[cut+end:], '\n')
	if line < 0 {
		return len(text)
	}
	return cut + end + line + 1
}
