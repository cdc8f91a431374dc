package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A demoPrinter prints the demo. Colour is never the only sign, and is omitted unless the output is a terminal.
type demoPrinter struct {
	out    io.Writer
	began  time.Time
	colour bool
	drawn  time.Time // when a group's progress was last drawn
}

func newDemoPrinter(out io.Writer) *demoPrinter {
	colour := isTerminal(out) && os.Getenv("NO_COLOR") == ""
	return &demoPrinter{out: rawWriter(out), began: time.Now(), colour: colour}
}

// Colours, as ANSI codes.
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "36"
	purple = "35"
)

func (p *demoPrinter) paint(colour, text string) string {
	if !p.colour || colour == plain {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p *demoPrinter) title(text string) { fmt.Fprintf(p.out, "\n%s\n", p.paint(bold, text)) }

func (p *demoPrinter) say(format string, args ...any) { fmt.Fprintf(p.out, "  "+format+"\n", args...) }

func (p *demoPrinter) introduce(job *demoJob) {
	p.say("%-14s %s", job.name, p.paint(dim, job.about))
}

// signs are the signs and colours of story lines, by their names.
var signs = map[string]struct{ sign, colour string }{
	"processing":       {"▶", dim},
	"retry":            {"↻", yellow},
	"released":         {"↩", dim},
	"reclaimed":        {"☠", purple},
	"complete":         {"✔", green},
	"failed":           {"✘", red},
	"expired":          {"✘", red},
	"cancelled":        {"■", red},
	"manual retry":     {"☞", blue},
	"cancel requested": {"■", blue},
	"redrive":          {"☞", blue},
	"breach":           {"!", yellow},
	"late result":      {"…", dim},
}

// line prints one line of a job's story.
func (p *demoPrinter) line(job *demoJob, line ops.Line) {
	if line.Name == "queued" || line.Name == "scheduled" {
		return // the job was introduced already
	}
	sign := signs[line.Name]
	about := p.about(line)
	head := fmt.Sprintf("%s %-12s", sign.sign, line.Name)
	p.say("%s  %-14s %s %s", p.paint(dim, p.clock(line.At)), job.name, p.paint(sign.colour, head), about)
}

func (p *demoPrinter) about(line ops.Line) string {
	worker, _, _ := strings.Cut(line.Worker, "/")
	switch line.Name {
	case "processing":
		return p.paint(dim, fmt.Sprintf("attempt %d by %s", line.Attempt, worker))
	case "complete":
		return p.paint(dim, fmt.Sprintf("attempt %d, took %v", line.Attempt, line.Duration.Round(10*time.Microsecond)))
	case "retry", "reclaimed", "failed", "expired":
		_, why, _ := strings.Cut(line.Text, ": ")
		return fmt.Sprintf("%s %s", p.paint(bold, line.Code), strings.TrimPrefix(why, "classified "+line.Code+" "))
	case "manual retry", "cancel requested", "redrive", "breach":
		return line.Text
	}
	_, why, _ := strings.Cut(line.Text, ": ")
	return p.paint(dim, why)
}

func (p *demoPrinter) clock(at time.Time) string {
	return fmt.Sprintf("%5.1fs", max(at.Sub(p.began), 0).Seconds())
}

// action prints something that the demo itself does.
func (p *demoPrinter) action(format string, args ...any) {
	p.say("%s  %s", p.paint(dim, p.clock(time.Now())), p.paint(blue, "— "+fmt.Sprintf(format, args...)+" —"))
}

// detail prints a line below an action.
func (p *demoPrinter) detail(format string, args ...any) {
	p.say("        %s", p.paint(blue, fmt.Sprintf(format, args...)))
}

// summary prints how the jobs ended and the result of the integrity check.
func (p *demoPrinter) summary(jobs []*demoJob, report ops.Report) {
	for _, state := range []holdfast.State{holdfast.Complete, holdfast.Failed, holdfast.Cancelled} {
		var names []string
		for _, job := range jobs {
			if job.state == state {
				names = append(names, job.name)
			}
		}
		p.say("%-10s %2d   %s", state, len(names), p.paint(dim, strings.Join(names, ", ")))
	}
	for _, job := range jobs {
		if job.resumed > 0 {
			p.say("reclaimed       %s continued %.1f s after its worker was killed (lease %v)", job.name, job.resumed.Seconds(), demoLease)
		}
	}
	if report.Healthy {
		p.say("doctor          %s", p.paint(green, "no invariant is broken"))
	}
	p.say("took            %.0f s", time.Since(p.began).Seconds())
}
