package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A tracer hears of everything that is about to be sent: statements, each of a batch, the beginning and end of transactions,
// and copies.
type tracer func(statement string)

var (
	_ pgx.QueryTracer    = tracer(nil)
	_ pgx.BatchTracer    = tracer(nil)
	_ pgx.CopyFromTracer = tracer(nil)
)

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t(data.SQL)
	return ctx
}

func (t tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	t("batch")
	return ctx
}

// TraceBatchQuery hears of a statement when its answer is read: what follows it in the batch may not have been answered.
func (t tracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) { t(data.SQL) }

func (t tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (t tracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	t("copy to " + data.TableName.Sanitize())
	return ctx
}

func (t tracer) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
