package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A tracer is called with everything that is about to be sent: statements, batches, BEGIN, COMMIT and ROLLBACK, and copies.
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

// TraceBatchQuery does nothing: a batch is sent as a whole, and was traced as one.
func (t tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (t tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (t tracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	t("copy to " + data.TableName.Sanitize())
	return ctx
}

func (t tracer) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
