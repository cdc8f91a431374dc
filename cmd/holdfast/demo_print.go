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

// A stage prints for people. Colour is never the only sign, and is left out where nobody would see it.
type stage struct {
	out    io.Writer
	began  time.Time
	colour bool
	drawn  time.Time // when a group's progress was last drawn
}

func newStage(out io.Writer) *stage {
	colour := isTerminal(out) && os.Getenv("NO_COLOR") == ""
	return &stage{out: rawWriter(out), began: time.Now(), colour: colour}
}

// Colours by what a line means.
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

func (s *stage) paint(colour, text string) string {
	if !s.colour || colour == plain {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s *stage) title(text string) { fmt.Fprintf(s.out, "\n%s\n", s.paint(bold, text)) }

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.out, "  "+format+"\n", args...) }

func (s *stage) cast(job *demoJob) {
	s.say("%-14s %s", job.name, s.paint(dim, job.about))
}

// signs by the name of a story line: what to print, and how.
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
func (s *stage) line(job *demoJob, line ops.Line) {
	if line.Name == "queued" || line.Name == "scheduled" {
		return // the cast was introduced already
	}
	sign := signs[line.Name]
	about := s.about(line)
	head := fmt.Sprintf("%s %-12s", sign.sign, line.Name)
	s.say("%s  %-14s %s %s", s.paint(dim, s.clock(line.At)), job.name, s.paint(sign.colour, head), about)
}

func (s *stage) about(line ops.Line) string {
	worker, _, _ := strings.Cut(line.Worker, "/")
	switch line.Name {
	case "processing":
		return s.paint(dim, fmt.Sprintf("attempt %d by %s", line.Attempt, worker))
	case "complete":
		return s.paint(dim, fmt.Sprintf("attempt %d, took %v", line.Attempt, line.Duration.Round(10*time.Microsecond)))
	case "retry", "reclaimed", "failed", "expired":
		_, why, _ := strings.Cut(line.Text, ": ")
		return fmt.Sprintf("%s %s", s.paint(bold, line.Code), strings.TrimPrefix(why, "classified "+line.Code+" "))
	case "manual retry", "cancel requested", "redrive", "breach":
		return line.Text
	}
	_, why, _ := strings.Cut(line.Text, ": ")
	return s.paint(dim, why)
}

func (s *stage) clock(at time.Time) string {
	return fmt.Sprintf("%5.1fs", max(at.Sub(s.began), 0).Seconds())
}

// aside is what the demo itself does.
func (s *stage) aside(format string, args ...any) {
	s.say("%s  %s", s.paint(dim, s.clock(time.Now())), s.paint(blue, "— "+fmt.Sprintf(format, args...)+" —"))
}

func (s *stage) remark(format string, args ...any) {
	s.say("        %s", s.paint(blue, fmt.Sprintf(format, args...)))
}

// summary says how everything ended.
func (s *stage) summary(jobs []*demoJob, report ops.Report) {
	for _, state := range []holdfast.State{holdfast.Complete, holdfast.Failed, holdfast.Cancelled} {
		var names []string
		for _, job := range jobs {
			if job.state == state {
				names = append(names, job.name)
			}
		}
		s.say("%-10s %2d   %s", state, len(names), s.paint(dim, strings.Join(names, ", ")))
	}
	for _, job := range jobs {
		if job.resumed > 0 {
			s.say("reclaimed       %s went on %.1f s after its worker was killed (lease %v)", job.name, job.resumed.Seconds(), demoLease)
		}
	}
	if report.Healthy {
		s.say("doctor          %s", s.paint(green, "no promise is broken"))
	}
	s.say("took            %.0f s", time.Since(s.began).Seconds())
}
