package holdfasttest

import (
	"context"
	"io"
	"log/slog"
	"sync"
)

// recordLog returns a handler that writes every line to out, without its time, and passes it on to the handler of another logger, if there is one.
func recordLog(out io.Writer, also *slog.Logger) slog.Handler {
	text := slog.NewTextHandler(&lockedWriter{out: out}, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime})
	if also == nil {
		return text
	}
	return bothHandlers{text, also.Handler()}
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// A lockedWriter can be used by several goroutines.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}

// bothHandlers passes each record to two handlers.
type bothHandlers [2]slog.Handler

func (b bothHandlers) Enabled(context.Context, slog.Level) bool { return true }

func (b bothHandlers) Handle(ctx context.Context, r slog.Record) error {
	for _, h := range b {
		if h.Enabled(ctx, r.Level) {
			if err := h.Handle(ctx, r.Clone()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b bothHandlers) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bothHandlers{b[0].WithAttrs(attrs), b[1].WithAttrs(attrs)}
}

func (b bothHandlers) WithGroup(name string) slog.Handler {
	return bothHandlers{b[0].WithGroup(name), b[1].WithGroup(name)}
}
