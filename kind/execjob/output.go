package execjob

import (
	"fmt"
	"strings"
	"sync"

	"github.com/holdfastdev/holdfast/failure"
)

// An output keeps the beginning and the end of what a program says, and swallows the rest, so that the program is never held up.
type output struct {
	half int

	mu   sync.Mutex
	head []byte
	tail []byte // a ring once it is full
	next int    // where the ring goes on
	lost int64  // bytes that are in neither
}

func newOutput(most int) *output { return &output{half: most / 2} }

// Write takes everything.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := len(text)
	if room := o.half - len(o.head); room > 0 {
		n := min(room, len(text))
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

// String is what was kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	if o.lost == 0 {
		return string(o.head) + tail
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", o.head, o.lost, tail)
}

// show makes an output fit to be kept with the job.
func (p Program) show(o *output) string {
	text := strings.ToValidUTF8(o.String(), "\uFFFD")
	if p.Verbatim {
		return text
	}
	return scrub(text, p.MaxOutput+200)
}

// scrub cleans a long text piece by piece, because what is cleaned at once is cut at 4 KiB.
func scrub(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return '?' // not spelled out, lest a flood of them be four times as long
		}
		return c
	}, text)
	var all strings.Builder
	for len(text) > 0 {
		cut := piece(text)
		all.WriteString(failure.Scrub(text[:cut]))
		text = text[cut:]
	}
	clean := all.String()
	if len(clean) <= most {
		return clean
	}
	o := newOutput(most)
	_, _ = o.Write([]byte(clean))
	return strings.ToValidUTF8(o.String(), "\uFFFD")
}

// piece is how much of a text is cleaned at once: some lines, or as much of a very long one as ends where no secret goes on. A key that fills lines is
// left in one piece.
func piece(text string) int {
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
